"""Programs for work on a project, and those that contact hosts, in the one table of programs."""

from collections.abc import Mapping

from policy.shell.programs import Program

__all__ = ["PROJECT_COMMANDS", "PROJECT_PROGRAMS", "RSYNC_REMOVES"]


RSYNC_REMOVES = (
    "remove-source-files", "delete", "delete-before", "delete-during", "delete-delay", "delete-after",
    "delete-excluded", "delete-missing-args", "del",
)  # fmt: skip
"""Options by which rsync removes files, which it only lists with -n."""
_NPM_RISKS = (
    "--prefix --script-shell --userconfig --globalconfig --node-options --shell --editor --cache --git --browser "
    "--viewer --init-module --cwd --dir --use-yarnrc --modules-folder"
)
_CURL_RISKS = (
    "--output --output-dir --remote-name --remote-name-all --remote-header-name --create-dirs --dump-header "
    "--cookie-jar --config --trace --trace-ascii --stderr --libcurl --hsts --alt-svc --etag-save --upload-file "
    "--unix-socket --abstract-unix-socket --proxy --preproxy --netrc-file --engine --quote"
)
_WGET_RISKS = (
    "--output-document --output-file --append-output --directory-prefix --config --execute --input-file "
    "--use-askpass --save-cookies --post-file --body-file --warc-file --rejected-log --hsts-file "
    "--preserve-permissions"
)
_GO_RISKS = (
    "-exec -toolexec -o -vettool -overlay -modfile -pkgdir -outputdir -coverprofile -cpuprofile -memprofile "
    "-blockprofile -mutexprofile -trace -ldflags -gcflags -asmflags -gccgoflags -compiler -C"
)


def _runs_scripts(*words: str) -> Program:
    """A package manager for JavaScript; after these words it runs a command."""
    return Program(
        wraps_after=frozenset(words),
        letters="DEOPSgw:",
        options=(
            "--if-present --workspace= --workspaces --no-audit --no-fund --save --save-dev --save-exact "
            "--production --omit= --include= --frozen-lockfile"
        ),
        risky_options=_NPM_RISKS,
        risky_letters="C:",
        effect="script",
        passes_on=True,
    )


def _script(letters: str = "", options: str = "") -> Program:
    return Program(effect="script", letters=letters, options=options, passes_on=True)


_NETWORK = Program(effect="network")
_FORMATS = Program(
    letters="qvl:t:S", options="--check --check-only --diff --quiet --verbose --line-length= --profile="
)
PROJECT_PROGRAMS: tuple[tuple[str, Program], ...] = (
    ("npm", _runs_scripts("exec", "x")),
    ("pnpm yarn", _runs_scripts("exec", "dlx")),
    # programs that run what the project says
    (
        "make gmake",
        Program(
            effect="script",
            checked_as="make",
            letters="BiknqrRsStwdpvhj::l::O::W:o:",
            options=(
                "--jobs --keep-going --silent --quiet --always-make --dry-run --just-print --no-print-directory "
                "--print-directory --no-builtin-rules --no-builtin-variables --question --touch --trace "
                "--ignore-errors --output-sync --load-average --version --help --stop --no-keep-going "
                "--warn-undefined-variables"
            ),
            risky_letters="f:C:I:E:",
            risky_options="--file --makefile --directory --include-dir --eval",
        ),
    ),
    ("ctest", _script("j:R:E:L:", "--output-on-failure --rerun-failed --parallel=")),
    ("cmake", _script("j::", "--build= --target= --parallel --config= --clean-first")),
    (
        "gradle mvn",
        _script(
            "qBoeUnXT:x:", "--info --stacktrace --offline --daemon --no-daemon --parallel --continue --batch-mode"
        ),
    ),
    ("nox tox", _script("e:s:qvr", "--sessions= --session= --recreate --parallel")),
    ("just ninja rake ant bazel", _script("j:k:l")),
    ("rustc", Program(effect="script", prints_version=True)),
    (
        "cargo",
        Program(
            effect="script",
            passes_on=True,
            checked_as="cargo",
            letters="vqj:p:F:D:W:A:",
            options=(
                "--workspace --all-targets --all-features --no-default-features --features= --package= --bin= "
                "--bins --lib --test= --tests --example= --examples --bench= --benches --doc --exclude= --jobs= "
                "--profile= --locked --offline --frozen --message-format= --no-run --no-fail-fast --keep-going "
                "--allow-dirty --allow-staged --no-deps --document-private-items --edition= --test-threads= "
                "--skip="
            ),
            risky_options="--config --manifest-path --target-dir --artifact-dir --out-dir --lockfile-path --open",
            risky_letters="C:Z:",
        ),
    ),
    (
        "go",
        Program(
            effect="script",
            prints_version=True,
            options=(
                "-v -race -short -cover -json -a -n -x -failfast -benchmem -trimpath -work -run= "
                "-count= -timeout= -bench= "
                "-benchtime= -tags= -p= -parallel= -list= -shuffle= -cpu= -covermode= -coverpkg= "
                "-skip= -vet= -s -w -l -d"
            ),
            risky_options=_GO_RISKS,
        ),
    ),
    (
        "pytest py.test",
        Program(
            effect="script",
            letters="qvxslhVk:m:n:r:p:W:",
            options=(
                "--co --collect-only --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise "
                "--maxfail= --tb= --durations= --durations-min= --no-header --no-summary --quiet --verbose "
                "--exitfirst --pdb --capture= --color= --markers --fixtures --setup-show --setup-only "
                "--setup-plan --strict-markers --strict-config --strict --runxfail --deselect= --ignore= "
                "--ignore-glob= --import-mode= --cov --cov-report= --cov-branch --no-cov --cov-fail-under= "
                "--numprocesses= --dist= --timeout= --reruns= --disable-warnings --showlocals --version --help "
                "--benchmark-only --benchmark-skip"
            ),
            risky_letters="c:o:",
            checked_as="pytest",
        ),
    ),
    # tools that look at the code of a project, and change it
    (
        "ruff",
        Program(
            letters="qvensw",
            options=(
                "--fix --no-fix --unsafe-fixes --no-unsafe-fixes --diff --check --select= --ignore= "
                "--extend-select= --extend-ignore= --exclude= --extend-exclude= --quiet --verbose --silent "
                "--statistics --show-fixes --show-files --show-settings --preview --no-preview --target-version= "
                "--line-length= --output-format= --no-cache --watch --exit-zero --exit-non-zero-on-fix "
                "--force-exclude --isolated --per-file-ignores= --fixable= --unfixable= --add-noqa --help "
                "--version"
            ),
            risky_letters="o:",
            risky_options="--output-file --config --cache-dir --stdin-filename",
        ),
    ),
    (
        "mypy pyright",
        Program(
            letters="vp:m:",
            options=(
                "--strict --ignore-missing-imports --no-incremental --show-error-codes --pretty --no-pretty "
                "--no-color-output --check-untyped-defs --disallow-untyped-defs --warn-unused-ignores "
                "--python-version= --no-error-summary --follow-imports= --exclude= --package= --module= "
                "--no-site-packages --namespace-packages --explicit-package-bases --verbose --version --help "
                "--stats --watch"
            ),
        ),
    ),
    ("black isort", _FORMATS),
    (
        "eslint jest mocha prettier tsc vitest",
        Program(
            letters="itbuwv",
            options=(
                "--fix --ext= --quiet --max-warnings= --check --write --list-different --noEmit --watch "
                "--watchAll --pretty --strict --coverage --runInBand --verbose --silent --bail --ci "
                "--updateSnapshot --passWithNoTests --onlyChanged --maxWorkers= --testNamePattern= "
                "--testPathPattern= --detectOpenHandles --forceExit --run --skipLibCheck --help --version"
            ),
        ),
    ),
    # programs that contact hosts
    (
        "curl",
        Program(
            effect="network",
            letters="sSfLIvgGikNnqa#012346A:H:X:d:F:m:u:w:r:z:e:C:y:Y:",
            options=(
                "--silent --show-error --fail --fail-with-body --location --head --include --verbose --compressed "
                "--insecure --max-time= --connect-timeout= --retry= --retry-delay= --retry-max-time= "
                "--retry-all-errors --retry-connrefused --header= --request= --data= --data-raw= "
                "--data-urlencode= --data-binary= --json= --form= --form-string= --url= --user= --user-agent= "
                "--referer= --get --globoff --http1.1 --http2 --http3 --ipv4 --ipv6 --no-progress-meter "
                "--progress-bar --no-buffer --write-out= --range= --max-redirs= --tlsv1.2 --path-as-is "
                "--location-trusted --limit-rate= --max-filesize= --disable --help --version"
            ),
            risky_letters="o:OJD:c:K:T:x:E:b:U:Q:P:t:",
            risky_options=_CURL_RISKS,
            checked_as="curl",
        ),
    ),
    (
        "wget",
        Program(
            effect="network",
            letters="qvcNSrkpmH46l:t:T:w:Q:U:A:R:D:I:B:",
            options=(
                "-nv -nc -nd -np -nH --quiet --no-verbose --continue --timestamping --spider --server-response "
                "--timeout= --tries= --wait= --user-agent= --header= --no-check-certificate --recursive --level= "
                "--no-parent --no-clobber --no-directories --method= --max-redirect= --help --version"
            ),
            risky_letters="O:o:a:P:i:e:",
            risky_options=_WGET_RISKS,
        ),
    ),
    (
        "rsync",
        Program(
            letters="avrzhnuclptgoDPHAXSxqiWRkmdB:",
            options=(
                "--archive --verbose --recursive --dry-run --progress --stats --exclude= --include= --compress "
                "--partial --human-readable --itemize-changes --times --perms --links --update --checksum "
                "--existing --ignore-existing --info= --bwlimit= --max-size= --min-size= --quiet --relative"
            ),
            risky_options=" ".join(
                (
                    "--rsh --rsync-path --log-file --write-batch --files-from --password-file",
                    *(f"--{one}" for one in RSYNC_REMOVES),
                )
            ),
            risky_letters="e:f:M:T:@",
            handles="copies",
            effect="writes",
        ),
    ),
    (
        "gh glab",
        Program(
            effect="network",
            letters="L:R:s:t:b:a:l:B:H:d",
            options=(
                "--limit= --state= --json= --repo= --title= --body= --author= --label= --assignee= --search= "
                "--draft --base= --head= --fill --comments --log --log-failed --branch= --help --version"
            ),
        ),
    ),
    (
        "pip pip3",
        Program(
            effect="network",
            letters="r:c:e:Uqv",
            options=(
                "--upgrade --quiet --verbose --requirement= --constraint= --editable= --no-deps --user --dry-run "
                "--no-cache-dir --pre --upgrade-strategy= --outdated --format= --help --version"
            ),
        ),
    ),
    ("aria2c dig ftp http https lftp mosh nc ncat netcat nslookup ping ping6", _NETWORK),
    ("aws az brew dnf flatpak gcloud gem helm snap telnet terraform traceroute whois yum", _NETWORK),
    ("yt-dlp apt apt-get apk pacman zypper", _NETWORK),
)

_COMMAND_ROWS: tuple[tuple[str, str, Program], ...] = (
    (
        "bun npm pnpm yarn",
        "add audit ci create dedupe i info init install link login logout outdated ping publish remove",
        _NETWORK,
    ),
    ("bun npm pnpm yarn", "search uninstall unlink up update upgrade view whoami", _NETWORK),
    (
        "bundle composer conda hatch mamba pdm pipenv poetry uv",
        "add build install lock publish remove sync update",
        _NETWORK,
    ),
    ("uv", "pip tool python", _NETWORK),
    ("cargo", "add fetch install login publish search update vendor", _NETWORK),
    ("go", "get install mod", _NETWORK),
)
PROJECT_COMMANDS: Mapping[tuple[str, str], Program] = {
    (name, subcommand): program
    for names, subcommands, program in _COMMAND_ROWS
    for name in names.split()
    for subcommand in subcommands.split()
}
"""Commands of these programs, such as `npm install`."""
