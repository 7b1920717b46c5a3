"""A key, and how it may be written where it must not be."""

import base64
import json
from urllib.parse import quote

KEY = "sk-or-v1-4f0c/b2+d9e17a65c3840fb21d7e9a06c58f13b7"
FORMS = {
    "raw": KEY,
    "url": quote(KEY, safe=""),
    "json": json.dumps(KEY).replace("/", "\\/")[1:-1],
    "base64": base64.b64encode(KEY.encode()).decode().rstrip("="),
    "hex": KEY.encode().hex(),
}
