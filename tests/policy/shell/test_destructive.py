import time

import pytest

from policy.shell.destructive import destructive_reason
from policy.shell.shell_text import ShellText, parse_shell
from tools.shell_ops.bash_parser import parse_bash


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /", "rm -fr /*", "rm -r -f //", "rm --recursive --force /", "sudo rm -rf /", "rm -rf ~",
        "rm -rf $HOME", "rm -rf \"$HOME\"/", "rm -rf /home/me", "rm -rf /usr", "rm -rf /etc/../usr",
        "cd /; rm -rf /", "echo $(rm -rf /)", "bash -c 'rm -rf /'", "rm --no-preserve-root -r x",
        "mkfs.ext4 /dev/sda1", "dd if=/dev/zero of=/dev/nvme0n1", "cat x > /dev/sda", "cp image /dev/sdb",
        "shred /dev/sda", "wipefs -a /dev/vda", "chmod -R 777 /", "chown -R me /etc", "find / -delete",
        "find / -exec rm {} ;", ":(){ :|:& };:", "timeout 5 rm -Rf /", "cd / && rm -rf *", "cd /; rm -r .",
        "cd && rm -rf ./*", "cd /usr && cd .. && rm -rf *", "cd / && find . -delete", "cd ~ && rm -rf -- *",
        "pushd / && chmod -R 777 .", "cd /tmp && rm -rf ~", "cd x; rm -rf ~/*", "cd x && rm -rf $HOME",
        "cd x && rm -rf \"${HOME}\"/", "cd x && cd && rm -rf *", "cd x && cd $HOME && rm -rf *",
        "rm -rf *; cd /; rm -rf *", "(cd / && rm -rf *)", "(cd /; (rm -rf *))", "cd / && (rm -rf *)",
        "cd / | true; cd / && ls | rm -rf *", "cd / && bash -c 'rm -rf *'", "bash -c 'cd / && rm -rf *'",
        "eval 'cd /'; rm -rf *", "command cd / && rm -rf *", "builtin cd /; rm -rf *",
        "cd / && cd x && cd - && rm -rf *", "pushd x; pushd /; rm -rf *", "cd /; pushd x; popd; rm -rf *",
        "env -C / rm -rf *", "sudo env --chdir=/ rm -rf *", "cd x; env -C/ X=1 bash -c 'rm -rf *'",
        "sudo -D / rm -rf .", "cd /; timeout 5 rm -rf *", "{ cd /; }; rm -rf *", "cd / & cd / && rm -rf * &",
        "if cd /; then rm -rf *; fi", "x=$(cd / && rm -rf *)", "cd /dev && dd if=x of=sda",
        "cd /; X=1 rm -rf *", "cd /; find . -delete", "rm -rf /{bin,etc}", "rm -rf {/,x}", "rm -rf /{,usr/}bin",
        "rm -rf /b*", "rm -rf /[a-z]*", "rm -rf /?*", "rm -rf ~/.*", "rm -rf ~/{*,.*}", "rm -rf ~root",
        "rm -rf ${HOME:?}", "rm -rf /usr/bin", "rm -rf /proc/1/root/", "rm -rf /proc/self/root/etc",
        "dd of=/dev/disk/by-id/x", "cp x /dev//sda", "cat x > /dev/./sda", "install x /dev/sda",
        "truncate -s0 /dev/sda", "badblocks -wsv /dev/sda", "cryptsetup luksFormat /dev/sda",
        "parted -s /dev/sda rm 1", "nvme format /dev/nvme0n1",
    ],
)  # fmt: skip
def test_destructive_commands_are_found_however_they_are_wrapped(command: str) -> None:
    assert destructive_reason(command, parse_shell(command, parse_bash))


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build", "rm -rf ./tmp /tmp/x", "rm /", "rm -rf /home/me/project/build", "echo 'rm -rf /'",
        "git rm -r x", "chmod -R u+w src", "chown -R me ~", "dd if=/dev/sda of=image", "cp /dev/sda image",
        "find / -name core -delete", "find . -delete", "cat > notes <<'EOF'\nrm -rf /\nEOF", "ls > /dev/null",
        "grep -r x /", "rm -rf * && cd /", "cd / && cd /srv/app && rm -rf *",
        "cd / && rm -rf ./home/me/x/build", "cd build && rm -rf *", "cd / && ls *", "cd - && rm -rf *",
        "cd build && cd - && rm -rf *", "cd ~/x && rm -rf *", "(cd / && ls); rm -rf *",
        "x=$(cd / && pwd); rm -rf *", "cd / | cat; rm -rf *", "ls | cd /; rm -rf *", "cd / & rm -rf *",
        "{ cd /; } | cat; rm -rf *", "bash -c 'cd / && ls'; rm -rf *", "cat <(cd /); rm -rf *",
        "bash -c 'cd /'; bash -c 'rm -rf *'", "(cd /); (rm -rf *)", "env -C / ls; rm -rf *",
        "env cd /; rm -rf *", "sudo -D / ls; rm -rf *", "pushd /; popd; rm -rf *",
        "pushd / && ls && popd && rm -rf *", "coproc cd /; rm -rf *", "cd / && cd - && rm -rf *",
        "cd x; cd /; cd -; rm -rf *", "(cd /; ls | (cd /etc; rm -rf ./x/y)); rm -rf *",
        "rm -rf /tmp*", "rm -rf {a,b}", "rm -rf /tmp/{bin,etc}", "rm -rf '/{bin,etc}'", "parted /dev/sda print",
        "cryptsetup luksDump /dev/sda", "nvme list /dev/nvme0", "badblocks -sv /dev/sda", "rm -rf ~/x*",
        "env -C / env -C /srv/app rm -rf *", "timeout 5 cd /; rm -rf *", "cd /; env -C /srv/x rm -rf *",
    ],
)  # fmt: skip
def test_ordinary_commands_are_not_destructive(command: str) -> None:
    assert destructive_reason(command, parse_shell(command, parse_bash)) == ""


@pytest.mark.parametrize("text", ["x" * 200_000, "x " * 100_000, "x" + " " * 200_000 + "y", "x()" * 60_000])
def test_a_text_of_any_length_is_searched_quickly(text: str) -> None:
    began = time.process_time()

    assert destructive_reason(text, ShellText(())) == ""
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "bomb", ["b(){ b|b& };b", "echo x; bomb () { bomb | bomb & } ; bomb", "function f { f & f & }; f"]
)
def test_a_fork_bomb_is_found_whatever_its_name(bomb: str) -> None:
    assert destructive_reason(bomb, ShellText(())) == "it is a fork bomb"
