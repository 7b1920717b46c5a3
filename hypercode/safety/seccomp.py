"""The system calls a boxed command may not make, as a seccomp filter.

A classic BPF program over `struct seccomp_data` (seccomp(2), linux/seccomp.h, linux/filter.h): number at offset 0,
architecture at 4, the low halves of the arguments from 16 on, 8 apart (both architectures here are little-endian).
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MACHINES", "program"]


@dataclass(frozen=True, slots=True)
class _Machine:
    """System call numbers of one architecture (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).

    `modes` are calls that set permission bits, each with the place of that argument; `opens` the calls that do so only where
    they make a file, with the place of their flags, behind which the bits stand.
    """

    audit: int
    socket: int
    clone: int
    ioctl: int
    forbidden: tuple[int, ...]
    modes: tuple[tuple[int, int], ...]
    opens: tuple[tuple[int, int], ...]
    foreign_from: int | None = None


# The same everywhere: io_uring (it makes other calls unseen), the mount calls of 2019 and later, pidfd_getfd, quotactl_fd.
_COMMON = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 467)
_CLONE3, _OPENAT2, _FCHMODAT2 = 435, 437, 452

MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        socket=41,
        clone=56,
        ioctl=16,
        forbidden=(
            *(101, 310, 311, 312),  # ptrace, process_vm_readv, process_vm_writev, kcmp
            *(248, 249, 250),  # add_key, request_key, keyctl
            *(321, 298, 323, 300, 304),  # bpf, perf_event_open, userfaultfd, fanotify_init, open_by_handle_at
            *(165, 166, 155, 161),  # mount, umount2, pivot_root, chroot
            *(272, 308),  # unshare, setns
            *(246, 320, 175, 313, 176),  # kexec_load, kexec_file_load, init_module, finit_module, delete_module
            *(169, 167, 168, 163, 179, 103),  # reboot, swapon, swapoff, acct, quotactl, syslog
            *(172, 173, 134, 180, 212, 153),  # iopl, ioperm, uselib, nfsservctl, lookup_dcookie, vhangup
            *(164, 227, 305, 159, 170, 171),  # settimeofday, clock_settime, clock_adjtime, adjtimex, set*name
        ),
        modes=(
            *((90, 1), (91, 1), (268, 2)),  # chmod, fchmod, fchmodat
            *((85, 1), (133, 1), (259, 2)),  # creat, mknod, mknodat
        ),
        opens=((2, 1), (257, 2)),  # open, openat
        foreign_from=0x40000000,  # x32 numbers
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        socket=198,
        clone=220,
        ioctl=29,
        forbidden=(
            *(117, 270, 271, 272),
            *(217, 218, 219),
            *(280, 241, 282, 262, 265),
            *(40, 39, 41, 51),
            *(97, 268),
            *(104, 294, 105, 273, 106),
            *(142, 224, 225, 89, 60, 116),
            *(42, 18, 58),
            *(170, 112, 266, 171, 161, 162),
        ),
        modes=((52, 1), (53, 2), (33, 2)),
        opens=((56, 2),),
    ),
}
"""The machines for which there is a filter, by `platform.machine()`."""

_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TYPING = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: put text into a terminal's input
_SET_ID = 0o6000  # S_ISUID, S_ISGID: whoever runs the file has its owner's rights
_MAKES = 0o20000100  # O_CREAT and the bit that only O_TMPFILE has
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def program(machine: str, families: Sequence[int] = ()) -> bytes:
    """The filter for a machine of `MACHINES`: an array of `struct sock_filter`.

    Sockets can be made of the address families given, pairs (socketpair) always.  What is forbidden answers EPERM; clone3,
    whose flags a filter cannot see, answers ENOSYS, so that C libraries fall back to clone; so does openat2.  No file gets
    the bits by which it runs with its owner's rights.  A program of a foreign architecture is killed.
    """
    m = MACHINES[machine]
    code: list[tuple[int, int, str, str]] = [  # operation, operand, where to go if it holds, and if not
        (_LOAD, _ARCHITECTURE, "", ""),
        (_EQUAL, m.audit, "", "kill"),
        (_LOAD, _NUMBER, "", ""),
        *([(_AT_LEAST, m.foreign_from, "deny", "")] if m.foreign_from else []),
        *((_EQUAL, number, "deny", "") for number in (*m.forbidden, *_COMMON)),
        *((_EQUAL, number, "missing", "") for number in (_CLONE3, _OPENAT2)),
        *((_EQUAL, number, f"mode {at}", "") for number, at in (*m.modes, (_FCHMODAT2, 2))),
        *((_EQUAL, number, f"open {at}", "") for number, at in m.opens),
        (_EQUAL, m.socket, "socket", ""),
        (_EQUAL, m.clone, "clone", ""),
        (_EQUAL, m.ioctl, "ioctl", "allow"),
    ]
    labels = {"socket": len(code)}
    code += [(_LOAD, _argument(0), "", ""), *((_EQUAL, family, "allow", "") for family in families)]
    code += [(_RETURN, _ERRNO | errno.EPERM, "", "")]
    labels["clone"] = len(code)
    code += [(_LOAD, _argument(0), "", ""), (_ANY_BIT, _NAMESPACES, "deny", "allow")]
    labels["ioctl"] = len(code)
    code += [(_LOAD, _argument(1), "", ""), *((_EQUAL, request, "deny", "") for request in _TYPING)]
    code += [(_RETURN, _ALLOW, "", "")]
    for at in (1, 2):
        labels[f"open {at}"] = len(code)
        code += [(_LOAD, _argument(at), "", ""), (_ANY_BIT, _MAKES, "", "allow")]
        code += [(_LOAD, _argument(at + 1), "", ""), (_ANY_BIT, _SET_ID, "deny", "allow")]
        labels[f"mode {at}"] = len(code)
        code += [(_LOAD, _argument(at), "", ""), (_ANY_BIT, _SET_ID, "deny", "allow")]
    ends = {"allow": _ALLOW, "deny": _ERRNO | errno.EPERM, "missing": _ERRNO | errno.ENOSYS, "kill": _KILL}
    for name, answer in ends.items():
        labels[name] = len(code)
        code.append((_RETURN, answer, "", ""))
    labels[""] = -1
    return b"".join(
        struct.pack("<HBBI", operation, _jump(labels[yes], at), _jump(labels[no], at), operand)
        for at, (operation, operand, yes, no) in enumerate(code)
    )


def _argument(number: int) -> int:
    """Where the low half of an argument is."""
    return _ARGUMENTS + 8 * number


def _jump(target: int, at: int) -> int:
    return 0 if target < 0 else target - at - 1
