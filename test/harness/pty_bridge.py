"""Runs a command on a pseudo-terminal: python3 pty_bridge.py ROWS COLUMNS COMMAND...

Start it as the leader of a session. Its output is the terminal's. Each line of its input is a request in JSON: {"keys": TEXT},
{"size": [ROWS, COLUMNS]}, {"signal": NUMBER}, {"continue": true}. Each line of its standard error is an event: {"stopped": true}, or
at the end {"code": NUMBER, "echo": BOOLEAN, "canonical": BOOLEAN}, where a negative code is a signal.
"""

import fcntl
import json
import os
import select
import signal
import struct
import sys
import termios


def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def tell(**event):
    os.write(2, (json.dumps(event) + "\n").encode())


def copy_output(wait):
    while select.select([master], [], [], wait)[0]:
        os.write(1, os.read(master, 65536))


def obey(request):
    if "keys" in request:
        os.write(master, request["keys"].encode())
    if "size" in request:
        resize(*request["size"])
    if "signal" in request:
        os.kill(child, request["signal"])
    if "continue" in request:
        os.tcsetpgrp(terminal, child)
        os.killpg(child, signal.SIGCONT)


master, terminal = os.openpty()
resize(int(sys.argv[1]), int(sys.argv[2]))
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for target in (0, 1, 2):
        os.dup2(terminal, target)
    os.close(master)
    os.execvp(sys.argv[3], sys.argv[3:])

pending = b""
inputs = [master, 0]
while True:
    ready = select.select(inputs, [], [], 0.02)[0]
    if master in ready:
        copy_output(0)
    if 0 in ready:
        read = os.read(0, 65536)
        if read == b"":
            # The process that started this one is gone.
            os.kill(child, signal.SIGKILL)
            inputs.remove(0)
        *lines, pending = (pending + read).split(b"\n")
        for line in lines:
            obey(json.loads(line))
    pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
    if pid == 0:
        continue
    copy_output(0)
    if os.WIFSTOPPED(status) and os.WSTOPSIG(status) != signal.SIGTSTP:
        # Not by its terminal: a debugger, or a host that is busy. It keeps the terminal, as it goes on by itself.
        continue
    if os.WIFSTOPPED(status):
        os.tcsetpgrp(terminal, os.getpgrp())
        tell(stopped=True)
        continue
    flags = termios.tcgetattr(terminal)[3]
    tell(
        code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status),
        echo=bool(flags & termios.ECHO),
        canonical=bool(flags & termios.ICANON),
    )
    break
