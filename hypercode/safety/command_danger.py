"""Programs and verbs that ask every time, as data; and what in a whole line makes remote code or lost secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypercode.safety.command_work import spend

__all__ = ["ALWAYS", "ALWAYS_WITH", "DECODERS", "DOWNLOADERS", "NETWORK", "VERBED", "danger_verbs", "then"]


def then(first: str, second: str) -> str:
    """An expression for two things with anything between them, for which no text takes longer than its length.

    Only the first place of the first is tried: whatever follows another one follows that, too.
    """
    return rf"\A(?>.*?(?:{first})).*(?:{second})"


ALWAYS: dict[str, str] = {
    name: why
    for why, names in {
        "raises privilege": "sudo sudoedit doas su pkexec run0 runuser gosu su-exec setcap chroot nsenter unshare capsh newgrp visudo vipw machinectl setpriv",
        "rewrites history": "bfg",
        "changes accounts or the system": "passwd chpasswd useradd usermod userdel adduser deluser groupadd groupmod groupdel gpasswd chsh chfn "
        "mount umount losetup insmod rmmod modprobe depmod kexec sysctl setenforce iptables ip6tables nft ufw firewall-cmd swapon swapoff "
        "apparmor_parser auditctl update-alternatives ldconfig mknod",
        "formats or rewrites a disk": "mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted partprobe wipefs blkdiscard hdparm cryptsetup lvremove "
        "vgremove pvremove lvreduce mdadm badblocks dmsetup zpool zfs debugfs tune2fs resize2fs diskutil nvme newfs format flashrom",
        "stops the machine or every process": "shutdown reboot halt poweroff init telinit killall5",
        "runs later": "crontab at batch atrm anacron launchctl update-rc.d chkconfig rc-update ssh-copy-id loginctl systemd-run fcrontab",
        "shows stored secrets": "pass gopass lpass bw keyring secret-tool keyctl gcore chntpw mimipenguin",
    }.items()
    for name in names.split()
}
# Programs above that may be looked at with nothing but these arguments.
ALWAYS_WITH: dict[str, set[str]] = {
    "crontab": {"-l"},
    "mount": {""},
    "zfs": {"list"},
    "zpool": {"list", "status"},
    "loginctl": {""},
}

NETWORK = {
    "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "tftp", "sftp", "scp", "rsync", "ssh", "ping", "ping6", "dig", "nslookup",
    "host", "drill", "delv", "http", "https", "xh", "aria2c", "lftp", "openssl", "mail", "mailx", "sendmail", "mutt", "rclone", "ngrok", "traceroute",
    "tracepath", "mtr", "whois", "getent", "resolvectl", "systemd-resolve", "axel", "fetch", "lynx", "w3m", "links", "elinks", "curlie", "httpie",
    "websocat", "wscat", "grpcurl", "mosquitto_pub", "nmap", "gist", "s3cmd", "gsutil", "aws", "croc", "magic-wormhole", "wormhole", "finger",
}  # fmt: skip
DOWNLOADERS = {
    "curl",
    "wget",
    "aria2c",
    "http",
    "https",
    "xh",
    "fetch",
    "axel",
    "lynx",
    "w3m",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ftp",
    "scp",
    "ssh",
    "lftp",
    "gsutil",
    "aws",
    "dig",
    "rsync",
    "telnet",
    "tftp",
    "sftp",
    "curlie",
    "websocat",
    "links",
    "iwr",
    "irm",
    "invoke-webrequest",
    "invoke-restmethod",
}
DECODERS = {
    "base64",
    "base32",
    "xxd",
    "openssl",
    "uudecode",
    "gunzip",
    "zcat",
    "gzip",
    "rev",
    "tr",
    "unxz",
    "xzcat",
    "bzcat",
    "gpg",
}

_PUBLISHES = "publishes a package, which cannot be taken back"
_UNTRIED = r"^(?!.*--dry-run)(?:-\S+ (?:[^-\s]\S* )??)*"
# A program, and a pattern over its arguments joined by blanks.
_VERBS: list[tuple[frozenset[str], re.Pattern[str], str]] = [
    (frozenset(names.split()), re.compile(pattern, re.S), why)
    for names, pattern, why in [
        (
            "gh glab",
            then(r"(?:^|\s)auth (?:\S+ )??status ", r"-t\b|--show-token")
            + "|"
            + then(r"(?:^|\s)auth ", r"\btoken|git-credential")
            + r"|^(?:repo|secret|ssh-key) (?:delete|archive)|^auth setup-git",
            "shows or changes stored credentials",
        ),
        ("gh glab", r"^gist create|^release upload", "uploads files"),
        ("gh glab", r"^release (?:create|delete)", "publishes, or takes back, a release"),
        (
            "npm pnpm yarn bun lerna",
            _UNTRIED + r"(?:npm )?(?:publish|unpublish|deprecate|dist-tag (?:add|rm)|owner (?:add|rm)|access \w)\b",
            _PUBLISHES,
        ),
        (
            "cargo poetry uv hatch flit pdm rye maturin vsce ovsx jsr deno",
            _UNTRIED + r"(?:publish|upload|yank)\b",
            _PUBLISHES,
        ),
        ("twine gem anaconda luarocks", _UNTRIED + r"(?:upload|push|yank)\b", _PUBLISHES),
        ("dart flutter pod mix", _UNTRIED + r"(?:pub publish|trunk push|hex\.publish)\b", _PUBLISHES),
        (
            "mvn mvnw gradle gradlew",
            r"(?:^|[\s:])(?:deploy|release:perform|publish(?!\w*ToMavenLocal)\w*)(?:\s|$)",
            _PUBLISHES,
        ),
        ("dotnet nuget", r"^(?:nuget )?(?:push|delete)\b", _PUBLISHES),
        (
            "semantic-release release-it goreleaser",
            r"^(?!.*(?:--dry-run|--snapshot|--help|--version|^check|^build))",
            _PUBLISHES,
        ),
        ("helm", r"^(?:cm-)?push\b", _PUBLISHES),
        ("python python3", r"setup\.py\b.*\s(?:upload|register)\b", _PUBLISHES),
        (
            "hf huggingface-cli flyctl fly vercel netlify railway wrangler",
            r"\bauth (?:token|whoami)|\benv pull|\btokens?\b",
            "shows stored secrets",
        ),
        (
            "gcloud",
            then("auth ", "print-") + r"|secrets versions access|auth application-default",
            "shows stored secrets",
        ),
        ("az", r"get-access-token|keyvault secret|ad sp create|credential", "shows stored secrets"),
        (
            "aws",
            r"configure (?:export|get)|sts (?:get-session|assume|get-fed)|secretsmanager|ssm get-param|ecr get-login|codeartifact get-auth",
            "shows stored secrets",
        ),
        ("aws gsutil s3cmd", r"\b(?:s3 )?(?:cp|sync|mv|put|rsync)\b", "uploads files"),
        ("aws gsutil s3cmd", r"\b(?:rb|rm|del)\b|delete-|terminate-", "removes things elsewhere"),
        (
            "gcloud az heroku fly flyctl doctl linode-cli hcloud oci ibmcloud scw vultr-cli civo exo netlify vercel railway wrangler "
            "eksctl cdk sls serverless sst amplify copilot eb firebase supabase planetscale pscale neonctl",
            r"(?:^|[\s:])(?:delete|destroy|remove|rm|purge|terminate|reset|nuke)(?:-\w+)*(?:\s|$)",
            "removes things elsewhere",
        ),
        ("git", r"(?i)-c ?help\.autocorrect=", "lets git guess what to run"),
        ("git", r"(?i)clean\.requireForce=(?:false|0|no|off)?(?:\s|$)", "lets git remove files"),
        ("security", r"find-|dump-|export", "shows stored secrets"),
        ("op", r"^(?:read|item|inject|document|run)", "shows stored secrets"),
        ("vault", r"^(?:read|kv|print|token|login)", "shows stored secrets"),
        ("doppler chamber infisical", r"secrets|read|export|download", "shows stored secrets"),
        ("heroku", r"auth:token|config", "shows stored secrets"),
        ("kubectl oc", r"\bsecrets?\b|\btoken\b|" + then("config view", "--raw"), "shows stored secrets"),
        ("kubectl oc helm", r"\b(?:delete|drain|uninstall)\b", "removes things elsewhere"),
        (
            "terraform tofu pulumi",
            r"^(?:-\S+ )*(?:destroy|state rm)|" + then("^apply", "-destroy") + "|" + then("output", "-(?:json|raw)"),
            "removes things elsewhere or shows secrets",
        ),
        ("sops", r"(?:^|\s)(?:-d|--decrypt|decrypt|exec-)", "shows stored secrets"),
        ("ansible-vault", r"view|decrypt|edit", "shows stored secrets"),
        ("gpg gpg2", r"export-secret|(?:^|\s)-d\b|--decrypt|delete-secret", "shows stored secrets"),
        ("age", r"(?:^|\s)-d\b|--decrypt", "shows stored secrets"),
        ("ssh-add", r"-[LDd]", "uses stored keys"),
        (
            "npm pnpm yarn",
            r"^token\b|^config (?:set|delete|edit)|^set |" + then("config (?:get|list|ls)", "auth|token|--json"),
            "shows or changes stored settings",
        ),
        ("pip pip3 conda mamba poetry", r"^config (?!list|get|debug|--show)\S", "changes stored settings"),
        (
            "pip pip3 pipx uv",
            then(
                "install|add|tool|run",
                r"https?://|git\+|svn\+|hg\+|bzr\+|--index-url|--extra-index-url|\s-i\s?\S|--trusted-host|--find-links",
            ),
            "code from an address",
        ),
        (
            "npm pnpm yarn bun npx bunx",
            r"https?://|git\+|git://|git@|--registry|(?:^|\s)(?:github|gitlab|bitbucket|gist):"
            r"|^(?:i|install|add)\b(?:.*?\s(?:-[DSEOgP]+|--save[\w-]*|--global|(?!-)\S+))?? [A-Za-z0-9][\w-]*/[\w.-]+(?:#\S+)?(?:\s|$)",
            "code from an address",
        ),
        ("cargo", r"^(?:install|add) .*--(?:git|registry|index)\b", "code from an address"),
        ("deno bun", r"https?://", "code from an address"),
        ("gem cpan cpanm luarocks", r"https?://|--source", "code from an address"),
        ("helm kubectl", then("-f|--filename|install|apply", "https?://"), "code from an address"),
        (
            "systemctl service",
            r"^(?!(?:--\S+ )*(?:status|list-\S+|show|is-\S+|cat|--version)\b)\s*\S",
            "starts or changes services",
        ),
        ("journalctl", r"--(?:vacuum|rotate|flush)", "removes logs"),
        (
            "docker podman",
            r"^(?:system|volume|image|container|builder) (?:prune|rm|remove)|^volume",
            "removes containers' data",
        ),
        ("docker podman", then(r"^login\b", "-p"), "password on the command line"),
        ("pre-commit husky lefthook overcommit simple-git-hooks", r"^(?:install|init|add)", "plants git hooks"),
        ("direnv", r"^(?:allow|permit|grant|edit|exec)", "lets a folder run code"),
        (
            "git",
            r"^lfs (?:install|prune)|" + then("^(?:clone|init)", "--template|--config|-c "),
            "changes what git runs",
        ),
        ("git-lfs", r"^install", "changes what git runs"),
        ("chmod", r"(?:^|\s)(?:[ugoa]*\+[rwxXt]*s|[ugoa]*=[rwxXt]*s|0?[24567]\d{3})\b", "sets the owner's powers"),
        (
            "chmod",
            r"^(?=(?:.*\s)?-(?:\w*R|-rec))(?:.*\s)?(?:0?[0-3][0-7]{2}|[ua]*-\w*r\w*|[ua]*=[wx]*)(?:\s|$)",
            "takes the right to read whole folders",
        ),
        ("chown chgrp", r"(?:^|\s)(?:root|0)(?:[:.]|\s)", "gives files to root"),
        ("setfacl chattr", r"-[mMRx]|[+-]i", "changes protection"),
        ("dd", r"\bof=/dev/(?!null\b)", "raw device"),
        ("dropdb dropuser", r"", "removes a database"),
        ("rails rake", r"(?:^|\s)db:(?:drop|reset|purge|schema:load|migrate:reset)", "removes data"),
        ("prisma", r"migrate reset|--force-reset|--accept-data-loss", "removes data"),
        ("php artisan", r"(?:^|artisan )(?:migrate:(?:fresh|reset|refresh)|db:wipe)", "removes data"),
        ("python python3 manage.py django-admin", r"(?:^|manage\.py )(?:flush|reset_db|sqlflush)\b", "removes data"),
        (
            "psql mysql sqlite3 mariadb",
            r"(?i)\bdrop\s+(?:database|schema|table)|\btruncate\b|\bdelete\s+from\b(?!(?:(?!\bdelete\b)[^;])*\bwhere\b)",
            "removes data",
        ),
        (
            "redis-cli mongo mongosh",
            r"(?i)flushall|flushdb|dropDatabase|\.drop\(|deleteMany\(\s*\{\s*\}",
            "removes data",
        ),
        ("defaults", r"^write|^delete", "changes stored settings"),
        ("hypercode", r"^(?!(?:policy|--version|--help|doctor|models|sessions list)\b)", "this program itself"),
        (
            "claude codex gemini aider opencode",
            r"dangerous|--yolo|--full-auto|bypass|--yes-always|-y\b",
            "an agent without questions",
        ),
        ("history fc", r"-[cdw]", "changes the shell's history"),
        (
            "ssh",
            r"ProxyCommand|LocalCommand|(?:^|\s)-[RLDw]|PermitLocalCommand|KnownHostsCommand",
            "a tunnel or a command by option",
        ),
        ("unzip 7z", r"-d\s*/(?:\s|$)|-o/(?:\s|$)", "unpacks over the system"),
        (
            "tar gtar",
            r"-C\s*/(?:\s|$)|--directory[ =]/(?:\s|$)|(?:^|\s)-\w*P\w*x|--absolute-names",
            "unpacks over the system",
        ),
        ("code cursor codium", r"--install-extension", "installs an extension"),
    ]
]


VERBED = {name for names, _, _ in _VERBS for name in names}


def danger_verbs(name: str, texts: Sequence[str]) -> str:
    """Why this program with these arguments asks every time; empty if it need not."""
    if name not in VERBED:
        return ""
    joined = " ".join(texts)
    spend(10 + len(joined) // 5)
    return next((f"{why}: {name}" for names, pattern, why in _VERBS if name in names and pattern.search(joined)), "")
