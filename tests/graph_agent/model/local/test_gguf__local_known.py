from graph_agent.model.local.gguf import KNOWN, find_known_model


def test_each_known_model_is_told_by_its_size_and_no_other_file_is() -> None:
    assert [find_known_model(known.bytes) for known in KNOWN] == list(KNOWN)
    assert find_known_model(1) is None


def test_each_known_model_has_a_digest_and_a_licence() -> None:
    assert [(len(known.sha256), bool(known.licence)) for known in KNOWN] == [(64, True)] * len(KNOWN)
