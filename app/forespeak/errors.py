"""The one error that people see: what happened, why, and what to do about it."""


class UserFacingError(Exception):
    """Something in the world went wrong, and the user can do something about it.

    Anything else that is raised is a bug of ours. The three parts are plain sentences.
    """

    def __init__(self, what: str, why: str = "", remedy: str = "") -> None:
        super().__init__(what, why, remedy)
        self.what = what
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.remedy) if part)
