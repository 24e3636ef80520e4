"""Taking over a running app: the values that it has become pins, so that nothing rotates.

`evidence` finds in live objects what was drawn for them, `shapes` says what each function can give, `taking` decides
what is pinned, and what is not, and why, `chains` keeps certificates
together, `derived` knows what needs no pin; `rounds` renders until pins fit each other. `rotation` prepares for another seed.
"""

from becalm.adopt.rotation import Rotation, rotate
from becalm.adopt.taking import Adoption, Row, adopt, depending

__all__ = ["Adoption", "Rotation", "Row", "adopt", "depending", "rotate"]
