import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { xml } from '@codemirror/lang-xml';
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { unifiedMergeView } from '@codemirror/merge';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** CodeMirror as configured for this page. Loaded when a value is first shown. */
export interface EditorOptions {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly language: 'json' | 'xml' | 'text';
  readonly label: string;
  readonly isEditable: boolean;
  /** Shows the difference to this text. */
  readonly original?: string;
  onChange?(text: string): void;
}

export function makeEditor({
  parent,
  text,
  language,
  label,
  isEditable,
  original,
  onChange,
}: EditorOptions): EditorView {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name=style-nonce]')?.content ?? '';
  const extensions: Extension[] = [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    foldGutter(),
    drawSelection(),
    bracketMatching(),
    highlightSelectionMatches(),
    EditorView.lineWrapping,
    syntaxHighlighting(STYLE),
    THEME,
    EditorView.contentAttributes.of({ 'aria-label': label, ...(isEditable ? {} : { tabindex: '0' }) }),
    EditorState.readOnly.of(!isEditable),
    EditorView.editable.of(isEditable),
    // Tab leaves the editor unless it is editable: Escape and then Tab leaves it in any case.
    keymap.of([
      ...(isEditable ? [indentWithTab, ...historyKeymap] : []),
      ...defaultKeymap,
      ...searchKeymap,
      ...foldKeymap,
    ]),
  ];
  if (isEditable) extensions.push(history());
  if (language === 'json') extensions.push(json());
  if (language === 'xml') extensions.push(xml());
  if (original !== undefined) {
    extensions.push(unifiedMergeView({ original, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }));
  }
  if (onChange !== undefined) {
    extensions.push(
      EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
    );
  }
  return new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
}

const STYLE = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--code-name)' },
  { tag: [tags.string, tags.attributeValue], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: [tags.tagName, tags.keyword], color: 'var(--code-keyword)' },
  { tag: [tags.comment, tags.meta], color: 'var(--dim)' },
]);

const THEME = EditorView.theme({
  '&': { height: '100%', fontSize: '12.5px', backgroundColor: 'transparent', color: 'var(--text)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--dim)', border: 'none' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'var(--select) !important' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
  '.cm-deletedChunk': { backgroundColor: 'var(--removed)' },
  '.cm-changedLine, .cm-inlineChangedLine': { backgroundColor: 'var(--added) !important' },
  '.cm-insertedLine': { backgroundColor: 'var(--added)' },
  '.cm-collapsedLines': { background: 'var(--raised)', color: 'var(--dim)', padding: '2px 12px' },
});
