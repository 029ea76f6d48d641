from pathlib import Path

import pytest

from graph_agent.web.guard import Access, is_loopback
from graph_agent.web.server import create_app
from tests.fakes.database_rows import Rows
from tests.fakes.light_commands import asking, json_of
from tests.graph_agent.web.pages import HOST, open_pages

_EVERYWHERE = "0.0" + ".0.0"
_PAGES = (
    "/", "/threads", "/thread?id=t1", "/state?id=t1", "/calls", "/call?thread=t1&call=call_a", "/files?id=t1",
    "/tasks",
)  # fmt: skip
_FORMS = (
    "/answer", "/answers", "/always", "/say", "/stop", "/mode", "/model", "/fork", "/rewind", "/task/cancel",
    "/task/retry",
)  # fmt: skip


def test_the_first_address_gives_a_cookie_that_other_sites_cannot_send(tmp_path: Path) -> None:
    pages = open_pages(tmp_path / "none.db", signed_in=False)

    first = pages.get(f"/?token={pages.site.access.token}")

    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert pages.site.access.token not in cookie
    assert pages.get("/", cookie=cookie.split(";")[0]).status_code == 200


@pytest.mark.parametrize(
    ("path", "target"),
    [("/thread", "/thread"), ("//evil.example/", "/evil.example/"), ("///e", "/e"), ("/%0d%0aa:b", "/%0D%0Aa%3Ab")],
)
def test_the_first_address_leads_to_a_page_of_this_server(tmp_path: Path, path: str, target: str) -> None:
    pages = open_pages(tmp_path / "none.db", signed_in=False)

    first = pages.get(f"http://{HOST}{path}?token={pages.site.access.token}")

    assert first.headers["location"] == target


@pytest.mark.parametrize("path", [*_PAGES, "/live?path=/", "/nothing", "/?token=", "/?token=wrong", "/?token=é"])
def test_nobody_reads_a_page_without_the_cookie(rows: Rows, path: str) -> None:
    asking(rows)
    pages = open_pages(rows.path, signed_in=False)

    for cookie in ({}, {"cookie": f"{pages.site.access.cookie_name}=x"}, {"cookie": "é=;;=\xff"}):
        response = pages.get(path, **cookie)
        assert (response.status_code, "call_a" in response.text) == (403, False)
        assert "Open the address that graph-agent web printed" in response.text


@pytest.mark.parametrize(
    ("host", "bound", "names", "is_known"),
    [
        ("127.0.0.1:7420", "127.0.0.1", (), True),
        ("localhost:7420", "127.0.0.1", (), True),
        ("LOCALHOST", "127.0.0.1", (), True),
        ("localhost:9000", "127.0.0.1", (), True),
        ("[::1]:7420", "127.0.0.1", (), True),
        ("evil.example", "127.0.0.1", (), False),
        ("127.0.0.1.evil.example", "127.0.0.1", (), False),
        ("localhost.evil.example:7420", "127.0.0.1", (), False),
        ("evil.example", "127.0.0.1", ("agent.example",), False),
        ("agent.example", "127.0.0.1", ("agent.example",), True),
        ("Agent.Example:443", "127.0.0.1", ("agent.example",), True),
        ("192.168.0.7:7420", "127.0.0.1", (), False),
        ("192.168.0.7:7420", _EVERYWHERE, (), True),
        ("evil.example:7420", _EVERYWHERE, (), False),
        ("user@localhost", "127.0.0.1", (), False),
        ("localhost/x", "127.0.0.1", (), False),
        ("localhost:port", "127.0.0.1", (), False),
        ("localhost:99999", "127.0.0.1", (), False),
        ("[::1", "127.0.0.1", (), False),
        ("", "127.0.0.1", (), False),
    ],
)
def test_only_known_names_are_answered(host: str, bound: str, names: tuple[str, ...], is_known: bool) -> None:
    assert Access(bound, names).is_known_host(host) is is_known


def test_a_request_under_a_foreign_name_is_refused_before_anything_else(rows: Rows) -> None:
    asking(rows)
    pages = open_pages(rows.path)

    refused = pages.get("/", host="evil.example")

    assert (refused.status_code, "call_a" in refused.text) == (421, False)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (f"http://{HOST}", 303),
        (f"https://{HOST}", 303),
        ("http://127.0.0.1:3000", 403),
        ("http://localhost:7420", 403),
        ("http://evil.example", 403),
        (f"http://{HOST}.evil.example", 403),
        (f"http://{HOST}@evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
    ],
)
def test_only_forms_of_our_own_pages_are_taken(rows: Rows, origin: str, status: int) -> None:
    asking(rows)
    pages = open_pages(rows.path)

    sent = pages.post("/answers", {"do": "approve"}, origin=origin)

    assert sent.status_code == status


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("csrf", ["", "wrong", "é", None])
def test_no_form_is_taken_without_the_token_of_the_page(rows: Rows, form: str, csrf: str | None) -> None:
    asking(rows)
    pages = open_pages(rows.path)
    fields = {} if csrf is None else {"csrf": csrf}

    sent = pages.send(
        "POST", form, headers={"origin": f"http://{HOST}"}, data={**fields, "id": "t1", "message": "x"}
    )

    assert sent.status_code == 403
    assert "older page" in sent.text
    assert json_of(rows, "approvals", "list")["answered"] == []


def test_every_form_of_the_server_is_in_the_tests_of_forms(rows: Rows) -> None:
    guard = create_app(open_pages(rows.path).site)
    routes = guard._app.routes  # type: ignore[attr-defined]  # the guard around the pages

    assert {route.path for route in routes if "POST" in route.methods} == set(_FORMS)


@pytest.mark.parametrize("form", _FORMS)
def test_a_read_only_server_takes_no_form_and_offers_none(rows: Rows, form: str) -> None:
    asking(rows)
    pages = open_pages(rows.path, is_read_only=True)

    sent = pages.post(form, {"id": "t1", "message": "x", "do": "approve"})

    assert (sent.status_code, "--read-only" in sent.text) == (403, True)
    assert [path for path in _PAGES if 'method="post"' in pages.get(path).text] == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, 403),
    ],
)
def test_pages_of_other_sites_may_link_here_and_nothing_else(
    rows: Rows, headers: dict[str, str], status: int
) -> None:
    asking(rows)

    assert open_pages(rows.path).get("/", **headers).status_code == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(rows: Rows, method: str) -> None:
    assert open_pages(rows.path).send(method, "/", headers={}).status_code == 405


@pytest.mark.parametrize("path", [*_PAGES, "/static/app.css", "/nothing", "/?token=wrong"])
def test_every_response_forbids_scripts_frames_and_caching_of_others(rows: Rows, path: str) -> None:
    asking(rows)

    response = open_pages(rows.path).get(path)

    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in response.headers
    assert ("no-store" in response.headers["cache-control"]) is not path.startswith("/static/")


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        (_EVERYWHERE, False),
        ("192.168.0.7", False),
        ("::", False),
        ("example.com", False),
    ],
)
def test_addresses_of_this_machine_alone_are_known(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local
