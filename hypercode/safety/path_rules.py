"""What a file's name says about it: secret, protected, the program's own, inside or outside.  Pure; nothing is opened.

`judge` takes the path to which a request *really leads* (links followed), so a link cannot rename what it points to.
Names are compared without regard to letter case and to the characters that some file systems ignore.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path
from typing import Literal

from hypercode.safety.decision import Decision

__all__ = [
    "HIDDEN_GLOBS",
    "HOME_SECRETS",
    "INSTRUCTS",
    "KEY_FILES",
    "PINS",
    "RUNS_ALONE",
    "STEERS",
    "SYSTEM_SECRETS",
    "TEMPORARY",
    "UNPACKED",
    "VAULTS",
    "Op",
    "Places",
    "judge",
    "never_listed",
    "secret_name",
]

Op = Literal["read", "write", "edit", "ls", "glob", "grep"]
"""What a tool wants with a path."""

TEMPORARY = ".hypercode-*.tmp"
"""The names of half-written files: hidden from searches, removed at the next start."""

Words = tuple[str, ...]


def _words(text: str) -> Words:
    return tuple(text.split())


def _rows(text: str) -> tuple[Words, ...]:
    return tuple(tuple(word.split("/")) for word in _words(text))


# Components in a row; `@` stands for a blank.  In a home folder, and anywhere outside the workspace, these are refused.
HOME_SECRETS = _rows("""
    .ssh .gnupg .aws .azure .kube .oci .docker/config.json .docker/contexts .dockercfg .config/containers/auth.json
    .config/gh .config/hub .config/glab-cli .config/gcloud .config/op .config/doctl .config/rclone .config/sops
    .config/git/credentials .git-credentials .netrc _netrc .authinfo* .pgpass .my.cnf .mylogin.cnf .s3cfg .boto
    .vault-token .terraform.d/credentials.tfrc.json .databrickscfg .snowsql .npmrc .pypirc .gem/credentials
    .cargo/credentials* .m2/settings*.xml .gradle/gradle.properties .composer/auth.json .config/composer/auth.json
    .nuget/nuget.config .password-store .local/share/keyrings .local/share/kwalletd .age .pki .putty
    .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .config/github-copilot
    .mozilla .thunderbird .config/google-chrome* .config/chromium .config/microsoft-edge* .config/bravesoftware
    library/keychains library/cookies library/safari library/messages library/mail
    library/application@support/google/chrome library/application@support/firefox
    library/application@support/com.apple.tcc .*_history .histfile .local/share/fish/fish_history
    .config/nushell/history.* .local/share/atuin .xauthority .iceauthority
    .huggingface .cache/huggingface/*token* .kaggle .fly/config.yml .config/fly/config.yml .config/heroku
    .local/share/heroku .vercel/auth.json .config/com.vercel.cli .local/share/com.vercel.cli .supabase/access-token
    .wrangler/config .config/.wrangler .ngrok2 .ngrok/ngrok.yml .config/ngrok .config/stripe .circleci/cli.yml
    .netlify/config.json .config/netlify .railway/config.json .config/railway .config/configstore/firebase-tools.json
    .config/configstore/snyk.json .pulumi/credentials.json .config/hcloud .config/scw .config/linode-cli .sentryclirc
    .terraformrc .tfrc .config/exercism/user.json .config/anthropic .config/openai .subversion/auth
    .config/bitwarden* .config/signal .config/slack .config/discord .electrum .bitcoin .ethereum/keystore .config/solana
    library/application@support/bitwarden* library/application@support/signal library/application@support/slack
    library/application@support/com.vercel.cli library/application@support/ngrok library/preferences/.wrangler
    library/preferences/netlify
""")
SYSTEM_SECRETS = _rows("""
    etc/shadow* etc/gshadow* etc/sudoers* etc/master.passwd etc/ssl/private etc/ssh/ssh_host_*_key etc/krb5.keytab
    etc/kubernetes etc/networkmanager/system-connections etc/wpa_supplicant* etc/wireguard etc/openvpn etc/pki/tls/private
    etc/rancher private/etc/master.passwd private/etc/sudoers* private/etc/ssh/ssh_host_*_key private/var/db
    run/secrets var/run/secrets var/spool/cron var/lib/sss boot/grub*/user.cfg
""")
KEY_FILES = _words("""
    .env .env.* .env-* .env_* *.env .envrc .envrc.* *.pem *.key *.p12 *.pfx *.jks *.keystore *.ppk *.kdbx *.keychain-db *.asc.key
    id_rsa id_dsa id_ecdsa id_ed25519 id_*_sk .netrc _netrc .npmrc .pypirc .htpasswd .pgpass .my.cnf .dockercfg
    .git-credentials .vault-token .secrets secrets.json secrets.y*ml secrets.toml secrets.ini secrets.txt credentials
    credentials.json credentials.y*ml credentials.toml credentials.ini credentials.csv client_secret*.json
    service-account*.json service_account*.json *.tfstate *.tfstate.backup *.tfvars wallet.dat
    id_rsa_* id_rsa-* id_dsa_* id_dsa-* id_ecdsa_* id_ecdsa-* id_ed25519_* id_ed25519-* *.p8 *.gpg *.pgp
    *private*.asc *secret*.asc *priv.asc *-sec.asc *.private *.pvk *.kdb *.keytab *.jceks *.bks *.ovpn wg0.conf wg1.conf
    kubeconfig kubeconfig.y*ml kubeconfig.json kubeconfig-*.y*ml .kubeconfig *.kubeconfig .dev.vars .dev.vars.*
    .vault_pass* .vault-pass* vault_pass vault-pass vault_password vault-password auth.json htpasswd
    .secrets.toml .secrets.y*ml .secrets.json .secrets.ini .secrets.env secrets.*.y*ml secrets.*.json credentials.xml
    token.txt apikey.txt api_key.txt api-key.txt apikeys.txt api_keys.txt password.txt passwords.txt passwords.csv
    passwd.txt gcp-key*.json gha-creds-*.json *firebase-adminsdk*.json local.settings.json wp-config.php
    .dockerconfigjson keystore.properties key.properties signing.properties
""")
_KEY_FILE = re.compile("|".join(map(translate, KEY_FILES)))
_TEMPLATES = {"example", "sample", "template", "dist", "defaults", "default"}
# What editors, package managers and careful people add to the name of a file they keep.
_KEPT = re.compile(
    r"(?:~|#|\.~\d+~|[._@-]\(?(?:bak|backup|bkp|bk|orig|original|old|prev|previous|save|saved|copy|sw[a-p]|tmp|temp|txt|"
    r"disabled|off|rpm(?:save|new|orig)|dpkg-(?:old|new|dist)|ucf-old|\d{1,14})\)?)+\Z|\A(?:\.?#|copy@of@)"
)
VAULTS = frozenset({"secrets", ".secrets", ".credentials"})
"""Folders whose files are secrets, whatever they are called."""
_TRANSLATIONS = {"locale", "locales", "lang", "langs", "i18n", "l10n", "intl", "translations"}
# Of what lies in a folder of secrets: programs, texts, and what builds or packs them.
_NO_SECRET = re.compile(
    r".*\.(?:py[ixw]?|[cm]?[jt]sx?|vue|svelte|go|rs|java|kts?|scala|groovy|gradle|[ch](?:c|pp|xx|h)?|mm?|swift|cs|fs|vb|rb|"
    r"erb|php|p[lm]|lua|r|jl|exs?|[eh]rl|clj[cs]?|hs|mli?|dart|zig|nim|tf|hcl|nix|graphql|proto|mdx?|rst|adoc|html?|s?css|"
    r"less|svg|snap|pub|mod|sum|lock)"
    r"|readme|license|makefile|dockerfile|cmakelists\.txt|(?:package|tsconfig)\.json|(?:cargo|pyproject)\.toml|"
    r"(?:kustomization|chart)\.ya?ml|build(?:\.bazel)?|codeowners|\.(?:git(?:ignore|keep|attributes)|keep|dockerignore)"
)

_REPOSITORY = {".git", "git~1", ".hg", ".svn", ".jj", ".bzr", "_darcs"}
_REPOSITORY_SECRETS = _rows(".git/config* .git/credentials .git/*/config .git/modules/*/config .hg/hgrc")
# What runs code without being started, in a home folder.
_HOME_PROTECTED = _rows("""
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .zsh
    .oh-my-zsh .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .xinitrc .xsession .xsessionrc .xprofile .xsessionrc
    .pam_environment .config/fish .config/environment.d .config/autostart .config/systemd .local/share/systemd
    .local/share/applications .local/bin .config/git .gitconfig .config/hypercode .config/pip .pip .condarc .wgetrc .curlrc
    .vimrc .gvimrc .vim .config/nvim .emacs .emacs.d .config/emacs .screenrc .tmux.conf .config/tmux .gdbinit .lldbinit
    .pdbrc .irbrc .pryrc .rprofile .direnvrc .config/direnv .rhosts .forward .cargo/config* .cargo/bin .yarnrc*
    .config/kitty .config/alacritty .config/ghostty .config/sway .config/i3 .config/hypr .config/mise
    library/launchagents library/launchdaemons library/application@support/com.apple.backgroundtaskmanagementagent
""")
# What package managers and tools unpack, and what starts of it without being looked at.
UNPACKED = _rows("""
    *.pth pyvenv.cfg .venv*/bin venv*/bin env/bin .virtualenv/bin virtualenv/bin .tox/*/bin .nox/*/bin node_modules/.bin
    .yarn/releases .yarn/plugins .yarn/sdks
""")
# What an editor, shell, interpreter or hook runs by itself, in any folder.
RUNS_ALONE = (
    *_rows("""
    .hypercode .vscode .vs .idea .fleet .zed .cursor .windsurf .claude .codex .gemini .kiro .roo .continue .devcontainer
    .devcontainer.json .husky .githooks .git-hooks .direnv .envrc .autoenv* .mcp.json *.code-workspace *.sublime-project
    .exrc .vimrc .nvimrc .nvim.lua .lazy.lua .lvimrc .local.vimrc .vimrc.local .vim .helix .theia .nova .dir-locals.el
    .dir-locals-2.el .gdbinit .gdbearlyinit .lldbinit .ycm_extra_conf.py .run/*.run.xml
    .amazonq .augment .factory .junie .kilocode .opencode .qwen .trae
    .opencode.json opencode.json opencode.jsonc .crush.json crush.json .github/hooks
    .cargo/config .cargo/config.toml .mvn/jvm.config .mvn/maven.config .mvn/extensions.xml
    sitecustomize sitecustomize.* usercustomize usercustomize.*
    .mise.toml mise.toml .mise.*.toml mise.*.toml .mise/config*.toml mise/config*.toml .rtx.toml .rtx.*.toml
    .rprofile .renviron .irbrc .pryrc .iex.exs .ghci .ocamlinit .octaverc .pdbrc .aider.conf.yml .bazelrc .bazeliskrc
    ipython_config.py jupyter_*config.py jupyter_*config.json
    """),
    *UNPACKED,
)
# What assistants take for their person's words, in any folder.
INSTRUCTS = _rows("""
    agents.md agent.md agents.override.md claude.md claude.local.md gemini.md qwen.md warp.md .rules .cursorrules
    .windsurfrules .clinerules .roorules* .roomodes .kilocoderules* .kilocodemodes .goosehints .augment-guidelines
    copilot-instructions.md .github/instructions .github/agents .github/skills
""")
# Which program of several is run, in any folder.
PINS = _rows("""
    .tool-versions .python-version .pdm-python .ruby-version .node-version .nvmrc .java-version .go-version .sdkmanrc .bazelversion
""")
# What git and package managers go by, in any folder.
STEERS = (
    *_rows("""
    .gitmodules .gitattributes .pre-commit-config.y*ml lefthook*.y*ml .lefthook*.y*ml lefthook*.toml .lefthook*.toml
    lefthook*.json .lefthook*.json .overcommit.yml .huskyrc* .lintstagedrc* lint-staged.config.* .simple-git-hooks.*
    simple-git-hooks.* captainhook.json .rusty-hook.toml .npmrc .yarnrc* .pnpmfile.cjs .pnp.cjs bunfig.toml
    .bundle/config .jvmopts .sbtopts rust-toolchain rust-toolchain.toml .luarc.json .luarc.jsonc
    .tmuxinator.y*ml
    """),
    *PINS,
)

HIDDEN_GLOBS: tuple[str, ...] = (
    TEMPORARY,
    *sorted(_REPOSITORY),
    *KEY_FILES,
    *("/".join(("**", *row) if len(row) > 1 else row).replace("@", " ") for row in HOME_SECRETS),
)
"""Names that searches never open or list, as globs without regard to letter case; some templates are among them."""

_PROJECT_SECRETS = (*HOME_SECRETS, *_REPOSITORY_SECRETS)
_STEERING = (*INSTRUCTS, *STEERS)
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF, 0xAD, 0x34F])


@dataclass(frozen=True, slots=True)
class Places:
    """The folders by which paths are judged, all with their links followed.

    `own` are the program's configuration, state and cache; `readable` are folders of which reading is always fine (the
    kept rest of long outputs, skills).
    """

    roots: tuple[Path, ...]
    home: Path
    own: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()

    def root_of(self, path: Path) -> Path | None:
        """The innermost root that holds the path."""
        return max((r for r in self.roots if path.is_relative_to(r)), key=lambda r: len(r.parts), default=None)


def judge(op: Op, path: Path, places: Places) -> tuple[Decision, str]:
    """What the name alone decides, and why; `path` is absolute and has its links followed."""
    changes = op in ("write", "edit")
    root = places.root_of(path)
    if root is None and _within(path, ("/proc", "/sys", "/dev")):
        return Decision.DENY, "a device, or a window into running programs"
    if not changes and any(path.is_relative_to(folder) for folder in places.readable):
        return Decision.AUTO, "kept for reading"
    if any(path.is_relative_to(own) for own in places.own):
        return Decision.DENY, "hypercode's own files"
    words = _folded(path)
    if root is None and _begins(words, SYSTEM_SECRETS):
        return Decision.DENY, "secrets of the system"
    if _begins(_below_home(words, places.home), HOME_SECRETS) or (root is None and _holds(words, HOME_SECRETS)):
        return Decision.DENY, "a place for passwords, keys or private data"
    if changes:
        return _judge_change(words, root, places)
    if secret_name(path, root):
        kept = "a file that usually holds secrets"
        return (Decision.ASK, kept) if root else (Decision.ALWAYS_ASK, f"{kept}, outside the workspace")
    if root is None:
        return Decision.ASK, "outside the workspace"
    return Decision.AUTO, "in the workspace"


def _judge_change(words: Words, root: Path | None, places: Places) -> tuple[Decision, str]:
    if not _REPOSITORY.isdisjoint(words):
        return Decision.DENY, "version control's own files; they can run code"
    if _begins(_below_home(words, places.home), _HOME_PROTECTED):
        return Decision.DENY, "a start-up or settings file of your account"
    if root is None:
        return Decision.DENY, "outside the workspace; files are only changed inside"
    below = words[len(root.parts) - 1 :]
    if _holds(below, RUNS_ALONE):
        return Decision.ALWAYS_ASK, "settings that can run code by themselves"
    if _key_file(below) or _holds(below, HOME_SECRETS):
        return Decision.ASK, "a file that usually holds secrets"
    if _holds(below, _STEERING):
        return Decision.ASK, "steers tools or instructs the assistant"
    return Decision.AUTO, "in the workspace"


def secret_name(path: Path, root: Path | None) -> bool:
    """Whether a file of that name below `root` usually holds secrets; templates (`.env.example`) do not."""
    words = _folded(path)[len(root.parts) - 1 if root else 0 :]
    return _key_file(words) or _holds(words, _PROJECT_SECRETS)


def never_listed(path: Path, root: Path | None) -> bool:
    """Whether searches pass over a path: secrets, version control's own files, half-written files."""
    words = _folded(path)[len(root.parts) - 1 if root else 0 :]
    return secret_name(path, root) or not _REPOSITORY.isdisjoint(words) or fnmatchcase(path.name, TEMPORARY)


def _key_file(words: Words) -> bool:
    """Whether the last of the components names a file of secrets, also under the name of a copy of one."""
    if not words:
        return False
    *folders, name = words
    bare = _KEPT.sub("", name) or name
    last = re.split("[._-]" if bare.startswith(".env") else "[.]", bare)[-1]
    if last in _TEMPLATES or last == "pub" or (last == "env" and bare.split(".")[0] in _TEMPLATES):
        return False
    if not VAULTS.isdisjoint(folders) and not _NO_SECRET.fullmatch(bare):
        return True
    if bare == "auth.json" and not _TRANSLATIONS.isdisjoint(folders):
        return False
    return any(map(_KEY_FILE.match, {name, bare, bare.removeprefix(".")} if bare != name else (name,)))


def _folded(path: Path) -> Words:
    return tuple(map(_fold, path.parts[1:]))


@lru_cache(maxsize=4096)
def _fold(name: str) -> str:
    bare = name.casefold().translate(_IGNORED)
    return (bare.rstrip(" .") or bare).replace(" ", "@")


def _within(path: Path, folders: Sequence[str]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _below_home(words: Words, home: Path) -> Words:
    """The components below a home folder, the person's or another's; none elsewhere."""
    own = _folded(home)
    if own and words[: len(own)] == own:
        return words[len(own) :]
    if words[:1] in (("home",), ("users",)):
        return words[2:]
    return words[1:] if words[:1] == ("root",) else words[2:] if words[:2] == ("var", "root") else ()


def _begins(words: Words, rows: tuple[Words, ...]) -> bool:
    return bool(words) and any(_matches(words, 0, row) for row in _by_first(rows, words[0]))


def _holds(words: Words, rows: tuple[Words, ...]) -> bool:
    return any(_matches(words, at, row) for at, word in enumerate(words) for row in _by_first(rows, word))


def _matches(words: Words, at: int, row: Words) -> bool:
    return len(words) - at >= len(row) and all(_named(words[at + n], known) for n, known in enumerate(row))


def _by_first(rows: tuple[Words, ...], word: str) -> list[Words]:
    """The rows whose first component may be that word."""
    exact, wild = _indexed(rows)
    return [*exact[word], *wild] if word in exact else wild


@lru_cache(maxsize=32)
def _indexed(rows: tuple[Words, ...]) -> tuple[dict[str, list[Words]], list[Words]]:
    exact: dict[str, list[Words]] = {}
    for row in rows:
        if "*" not in row[0]:
            exact.setdefault(row[0], []).append(row)
    return exact, [row for row in rows if "*" in row[0]]


def _named(word: str, known: str) -> bool:
    return word == known or ("*" in known and fnmatchcase(word, known))
