import { type ReactNode, useState } from 'react';
import type { MemberChange, MemberInfo } from '../../api/messages.ts';
import { Dialog } from '../parts/dialog.tsx';
import { TEXTS } from '../texts.ts';

const ROLES = ['participant', 'observer'] as const;

/** Adds a server, or changes an existing one. */
export function MemberDialog(props: {
  readonly member: MemberInfo | null;
  onDone(change: MemberChange | null): void;
}): ReactNode {
  const { member, onDone } = props;
  const { form: texts } = TEXTS.members;
  const [before] = useState(() => partsOf(member?.line ?? ';2181'));
  const [id, setId] = useState(member?.id ?? '');
  const [address, setAddress] = useState(before.address);
  const [client, setClient] = useState(before.client);
  const [role, setRole] = useState<string>(member?.isVoter === false ? 'observer' : 'participant');
  const canSubmit = /^\d{1,3}$/.test(id) && /^[^\s,;]+$/.test(address) && /^[^\s,;]+$/.test(client);
  return (
    <Dialog
      canSubmit={canSubmit}
      onClose={() => onDone(null)}
      onSubmit={() => onDone({ id, line: `${address}:${role};${client}` })}
      submit={texts.submit}
      title={member === null ? texts.add : texts.edit(member.id)}
    >
      {member === null && (
        <label>
          {texts.id}
          <input data-autofocus inputMode="numeric" onChange={({ target }) => setId(target.value)} value={id} />
        </label>
      )}
      <label>
        {texts.address}
        <input
          onChange={({ target }) => setAddress(target.value)}
          placeholder={texts.addressExample}
          spellCheck={false}
          value={address}
        />
      </label>
      <label>
        {texts.role}
        <select onChange={({ target }) => setRole(target.value)} value={role}>
          {ROLES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label>
        {texts.client}
        <input onChange={({ target }) => setClient(target.value)} spellCheck={false} value={client} />
      </label>
      <p className="dim">{texts.hint}</p>
    </Dialog>
  );
}

/** Parses `host:2888:3888:participant;2181`. */
function partsOf(line: string): { readonly address: string; readonly client: string } {
  const [address = '', client = ''] = line.split(';');
  return { address: address.replace(/:(?:participant|observer)$/i, ''), client };
}
