from tools.shell_ops.shell_command import INTERACTION_OFF, child_environment

_SECRETS = (
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_OPENAI_API_KEY",
    "CARGO_REGISTRY_TOKEN",
    "CI_JOB_TOKEN",
    "CLOUDFLARE_API_TOKEN",
    "DATABASE_URL",
    "DOCKER_AUTH_CONFIG",
    "GEMINI_API_KEY",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GPG_AGENT_INFO",
    "GRAPH_AGENT_BASE_URL",
    "HF_TOKEN",
    "KUBECONFIG",
    "LANGSMITH_API_KEY",
    "MYSQL_PWD",
    "NETRC",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENROUTER_API_KEY",
    "PGPASSWORD",
    "PIP_INDEX_URL",
    "SENTRY_AUTH_TOKEN",
    "SLACK_BOT_TOKEN",
    "SSH_AUTH_SOCK",
    "STRIPE_SECRET_KEY",
    "TWINE_PASSWORD",
    "UV_INDEX_URL",
    "VAULT_TOKEN",
)
_RUNS_SOMETHING = (
    "BASH_ENV",
    "BASH_FUNC_git%%",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH_COMMAND",
    "IFS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LESSOPEN",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RIPGREP_CONFIG_PATH",
    "RUBYOPT",
    "SHELLOPTS",
)


def test_only_listed_variables_are_inherited_and_nothing_asks() -> None:
    kept = {"PATH": "/bin", "HOME": "/home/u", "LC_ALL": "C"}
    source = {**kept, **dict.fromkeys((*_SECRETS, *_RUNS_SOMETHING), "sk-secret"), "PAGER": "less", "EDITOR": "vi"}

    assert child_environment(source) == {**kept, **INTERACTION_OFF}


def test_a_password_of_a_proxy_stays_with_the_proxy_that_needs_it() -> None:
    proxy = {"https_proxy": "http://me:geheim@proxy:3128"}

    assert child_environment(proxy)["https_proxy"] == proxy["https_proxy"]


def test_there_is_always_a_path() -> None:
    assert child_environment({})["PATH"] == "/usr/local/bin:/usr/bin:/bin"
