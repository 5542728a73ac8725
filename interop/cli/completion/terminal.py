"""Types lines into a shell on its own terminal.

    terminal.py <log> <shell> <arguments …>

Standard input has a JSON array of lines. Each of them runs a program that appends one line to the file <log>; the next one is
typed when it has done so and the shell asks again. What the terminal has shown goes to standard output at the end.
"""
import json
import os
import pty
import select
import sys
import time

PROMPT = b'READY> '
WAIT_SECONDS = 60

log, shell = sys.argv[1], sys.argv[2:]
lines = json.load(sys.stdin)

pid, terminal = pty.fork()
if pid == 0:
    os.execvp(shell[0], shell)

shown = b''


def read_until(what, holds):
    global shown
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f'timed out waiting for {what}; the terminal shows:\n{shown.decode(errors="replace")}')
        # The log may change while the terminal is silent.
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                chunk = b''
            if not chunk:
                sys.exit(f'the shell ended before {what}:\n{shown.decode(errors="replace")}')
            shown += chunk


def logged():
    with open(log, 'rb') as file:
        return file.read().count(b'\n')


def wait_for_prompt(position):
    read_until('a prompt', lambda: PROMPT in shown[position:])


open(log, 'a').close()
wait_for_prompt(0)
for count, line in enumerate(lines, 1):
    os.write(terminal, line.encode())
    read_until(f'the end of {line!r}', lambda: logged() >= count)
    position = max(0, shown.rfind(b'\n'))
    wait_for_prompt(position)
sys.stdout.write(shown.decode(errors='replace'))
os.close(terminal)
