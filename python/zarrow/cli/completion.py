"""`zarrow completion SHELL`: a script that completes subcommands and options, made from the parser.

The script has all words in it, so that a completion does not start Python.
"""

from __future__ import annotations

import argparse

_HELP = """how to install:
  bash  zarrow completion bash > ~/.local/share/bash-completion/completions/zarrow
  zsh   zarrow completion zsh > "${fpath[1]}/_zarrow"
  fish  zarrow completion fish > ~/.config/fish/completions/zarrow.fish"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow completion`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _HELP
    parser.add_argument("shell", metavar="SHELL", choices=sorted(_SCRIPTS), help="bash, zsh or fish")


def run(arguments: argparse.Namespace) -> int:
    """Print the script, and return the exit status."""
    from zarrow.cli import SUBCOMMANDS, build

    _, parsers = build(list(SUBCOMMANDS))
    print(_SCRIPTS[arguments.shell](SUBCOMMANDS, parsers), end="")
    return 0


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    """Return the values of positional arguments that can be listed."""
    positional = [action for action in parser._actions if not action.option_strings and action.choices]
    return [str(choice) for action in positional for choice in action.choices or ()]


def _bash(summaries: dict[str, str], parsers: dict[str, argparse.ArgumentParser]) -> str:
    cases = []
    for name, parser in parsers.items():
        words = [word for action in _options(parser) for word in action.option_strings]
        values = [
            f"{'|'.join(action.option_strings)}) words='{' '.join(map(str, action.choices))}' ;;"
            for action in _options(parser)
            if action.choices
        ]
        inner = f'; case "$before" in {" ".join(values)} esac' if values else ""
        cases.append(
            f"    {name}) options='{' '.join(words)}'; words='{' '.join(_choices(parser))}'{inner} ;;"
        )
    lines = "\n".join(cases)
    return f"""# Completion of zarrow for bash.
_zarrow() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" options='' words=''
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '{" ".join(summaries)} --help --version' -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{lines}
  esac
  if [[ $current == -* ]]; then words=$options; fi
  if [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$current")); fi
}}
complete -o bashdefault -o default -F _zarrow zarrow
"""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh(summaries: dict[str, str], parsers: dict[str, argparse.ArgumentParser]) -> str:
    def spec(action: argparse.Action) -> str:
        note = (action.help or "").replace("[", "(").replace("]", ")").replace(":", " ").replace("%%", "%")
        takes = "" if action.nargs == 0 else f":{action.dest}:"
        takes += f"({' '.join(map(str, action.choices))})" if action.choices else "_files" if takes else ""
        return " ".join(_quoted(f"{name}[{note}]{takes}") for name in action.option_strings)

    described = " ".join(_quoted(f"{name}:{summary}") for name, summary in summaries.items())
    cases = "\n".join(
        f"    {name}) _arguments {' '.join(map(spec, _options(parser)))} "
        + (
            _quoted(f"*:value:({' '.join(_choices(parser))})")
            if _choices(parser)
            else _quoted("*:store:_files")
        )
        + " ;;"
        for name, parser in parsers.items()
    )
    return f"""#compdef zarrow
# Completion of zarrow for zsh.
_zarrow() {{
  if (( CURRENT == 2 )); then
    local -a subcommands=({described})
    _describe subcommand subcommands
    return
  fi
  local subcommand=$words[2]
  shift words
  (( CURRENT-- ))
  case $subcommand in
{cases}
  esac
}}
if [[ $funcstack[1] == _zarrow ]]; then _zarrow "$@"; else compdef _zarrow zarrow; fi
"""


def _fish(summaries: dict[str, str], parsers: dict[str, argparse.ArgumentParser]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["# Completion of zarrow for fish."]
    for name, summary in summaries.items():
        lines.append(f"complete -c zarrow -f -n __fish_use_subcommand -a {name} -d {quoted(summary)}")
    for name, parser in parsers.items():
        condition = f"-n '__fish_seen_subcommand_from {name}'"
        for action in _options(parser):
            names = " ".join(
                f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}"
                for each in action.option_strings
            )
            takes = "" if action.nargs == 0 else " -r"
            takes += f" -f -a {quoted(' '.join(map(str, action.choices)))}" if action.choices else ""
            note = (action.help or "").replace("%%", "%")
            lines.append(f"complete -c zarrow {condition} {names}{takes} -d {quoted(note)}")
        if _choices(parser):
            lines.append(f"complete -c zarrow -f {condition} -a {quoted(' '.join(_choices(parser)))}")
    return "\n".join(lines) + "\n"


_SCRIPTS = {"bash": _bash, "fish": _fish, "zsh": _zsh}
