"""S2 "Message Enhancement", block 13: a message has an id; ours is made of role and parts as well."""

import uuid
from dataclasses import dataclass
from typing import List, Optional

from ctxgc import core
from ctxgc.core import Part, Role

# -- the block


@dataclass
class Message:
    role: Role
    parts: List[Part]
    message_id: Optional[str] = None  # NEW: Unique identifier

    def __post_init__(self):
        if self.message_id is None:
            self.message_id = str(uuid.uuid4())


# -- ours: it cannot be changed, so the list of parts is a tuple in it

for kind in (Message, core.Message):
    one, other = kind("user", [Part(text="Hello")]), kind(role="user", parts=[Part(text="Hello")])
    named = kind("assistant", [Part(text="Hi")], "m1")
    assert one.message_id and one.message_id != other.message_id
    assert (named.role, list(named.parts)[0].text, named.message_id) == ("assistant", "Hi", "m1")
    assert kind("user", [Part(text="Hello")], None).message_id

assert core.Message("user", [Part(text="Hello")]).data == {"role": "user", "content": "Hello"}
