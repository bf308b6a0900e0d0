"""Requests over HTTP, by the standard library's client: the one way in which adloom's own code sends any."""

import io
import ssl
import urllib.request
from http.client import HTTPMessage, HTTPResponse
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit


def open_url(request: urllib.request.Request, *, timeout_s: float, tls: ssl.SSLContext | None = None) -> HTTPResponse:
    """The answer to ``request``, to be closed by the caller.

    A redirect is followed if the request only reads and carries no key. By itself, the standard library turns a
    redirected POST into a GET without a body and takes it for sent, and sends ``Authorization`` to any server named.

    Args:
        request: to an http or https address.
        timeout_s: how many seconds to wait for a connection, and for an answer.
        tls: which certificates to trust; None: those of the system.

    Raises:
        HTTPError: the server refuses the request, or redirects one that must not be; its ``reason`` says so.
        OSError: the server does not answer.
        HTTPException: what answers does not speak HTTP.
    """
    handlers: list[urllib.request.BaseHandler] = [_CarefulRedirects()]
    if tls:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    answer: HTTPResponse = urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)
    return answer


class _CarefulRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if req.get_method() in ("GET", "HEAD") and not req.has_header("Authorization"):
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        # No more of the address: it may hold a key.
        parts = urlsplit(urljoin(req.full_url, newurl))
        fp.close()
        raise HTTPError(
            req.full_url,
            code,
            f"a redirect to {parts.scheme}://{parts.netloc.rpartition('@')[2]}, which would lose the content or give "
            "the key away, so it is not followed; set the address to the one that it leads to",
            headers,
            io.BytesIO(),
        )
