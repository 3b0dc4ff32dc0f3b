"""What keeps everybody from logging in as somebody else, and from learning who there is."""

from tests.mutations import Mutation

_TABLE = "partitions/state_machines/access/users.py"
_CLUSTER = "partitions/state_machines/cluster.py"
_SASL = "broker/network/sasl.py"
_ALTER = "broker/handlers/alter_user_scram_credentials.py"
_DESCRIBE = "broker/handlers/describe_user_scram_credentials.py"
_OF_TABLE = "tests/partitions/state_machines/access/test_users.py::"
_OF_SASL = "tests/broker/network/test_sasl_of_cluster.py::"
_OF_HANDLERS = "tests/broker/handlers/test_users.py::"
_UNACCEPTABLE = _OF_HANDLERS + "test_what_cannot_be_is_refused_and_keeps_nobody_else"
_NOBODY = _OF_SASL + "test_nobody_is_let_in_by_a_name_that_is_nobodys"
_CHALLENGED = _OF_SASL + "test_a_name_that_nobody_has_is_challenged_like_one_that_somebody_has"

MUTATIONS = (
    Mutation(
        name="who is deleted is gone",
        file=_TABLE,
        old="            of_user.pop(change.mechanism, None)\n",
        new="            pass\n",
        killed_by=_OF_TABLE + "test_a_user_is_there_while_it_has_a_credential",
    ),
    Mutation(
        name="a user without credentials is none",
        file=_TABLE,
        old="        if of_user:\n            after[change.name] = of_user\n",
        new="        if change.name:\n            after[change.name] = of_user\n",
        killed_by=_OF_TABLE + "test_a_user_is_there_while_it_has_a_credential",
    ),
    Mutation(
        name="what is not there is not deleted",
        file=_TABLE,
        old="        self.check(changes)\n",
        new="",
        killed_by=_OF_TABLE + "test_what_is_not_there_is_not_removed_and_nothing_else_is_done",
    ),
    Mutation(
        name="there are no more users than brokers can hold",
        file=_TABLE,
        old="        if len(after) > max(USERS_MAX, len(self._credentials)):",
        new="        if len(after) > max(USERS_MAX, len(self._credentials)) + 1:",
        killed_by=_OF_TABLE + "test_the_number_of_users_is_bounded",
    ),
    Mutation(
        name="too many users can be changed",
        file=_TABLE,
        old="        if len(after) > max(USERS_MAX, len(self._credentials)):",
        new="        if len(after) > USERS_MAX:",
        killed_by=_OF_TABLE + "test_the_number_of_users_is_bounded",
    ),
    Mutation(
        name="what a thread looks into is replaced, not changed",
        file=_TABLE,
        old="    after = dict(before)\n",
        new="    after = before\n",
        killed_by=_OF_TABLE + "test_what_somebody_looks_into_meanwhile_does_not_change",
    ),
    Mutation(
        name="what a thread looks into of one user is replaced, too",
        file=_TABLE,
        old="        of_user = dict(after.get(change.name, {}))\n",
        new="        of_user = after.get(change.name, {})\n",
        killed_by=_OF_TABLE + "test_what_somebody_looks_into_meanwhile_does_not_change",
    ),
    Mutation(
        name="salts of names that nobody has stay",
        file=_TABLE,
        old="            self.salt_secret = self.salt_secret or salt_secret\n",
        new="            self.salt_secret = salt_secret\n",
        killed_by=_OF_TABLE + "test_the_first_secret_is_kept",
    ),
    Mutation(
        name="no log shows the keys of a user",
        file=_TABLE,
        old="    stored_key: bytes = field(repr=False)\n",
        new="    stored_key: bytes = field()\n",
        killed_by=_OF_TABLE + "test_no_log_shows_a_key",
    ),
    Mutation(
        name="a snapshot keeps the users",
        file=_CLUSTER,
        old='            "users": self.users.body(),\n',
        new='            "users": UserTable().body(),\n',
        killed_by=_OF_TABLE + "test_users_are_what_was_set_and_not_removed",
    ),
    Mutation(
        name="a snapshot from before there were users is read",
        file=_CLUSTER,
        old='            if "users" in body or body["format"] >= _FORMAT_WITH_USERS:\n',
        new="            if body:\n",
        killed_by=_OF_TABLE + "test_a_snapshot_of_a_version_without_users_has_none",
    ),
    Mutation(
        name="a snapshot has the oldest format that has all that there is",
        file=_CLUSTER,
        old='            "format": self._format(),\n',
        new='            "format": _SNAPSHOT_FORMAT,\n',
        killed_by=_OF_TABLE
        + "test_a_snapshot_has_the_format_of_before_there_were_users_until_there_is_one",
    ),
    Mutation(
        name="a snapshot that has lost its users is none",
        file=_CLUSTER,
        old='            if "users" in body or body["format"] >= _FORMAT_WITH_USERS:\n',
        new='            if "users" in body:\n',
        killed_by=_OF_TABLE + "test_a_snapshot_of_a_version_with_users_that_has_none_is_refused",
    ),
    Mutation(
        name="of a name that both have the settings count",
        file=_SASL,
        old="        if self.has_password(name):\n            return None\n",
        new="",
        killed_by=_OF_SASL + "test_of_a_name_that_both_have_the_settings_count",
    ),
    Mutation(
        name="a name that is nobody's is not let in by SCRAM",
        file=_SASL,
        old="                if not self._is_known:\n                    raise failed()\n",
        new="",
        killed_by=_NOBODY,
    ),
    Mutation(
        name="a name that is nobody's is not let in by PLAIN",
        file=_SASL,
        old="        if not (is_right and self.has_password(name)):\n",
        new="        if not is_right:\n",
        killed_by=_NOBODY,
    ),
    Mutation(
        name="a password is of its mechanism",
        file=_SASL,
        old="        return self._of_cluster.credentials(name).get(BY_LABEL[mechanism])",
        new="        return next(iter(self._of_cluster.credentials(name).values()), None)",
        killed_by=_OF_SASL + "test_a_password_is_of_its_mechanism",
    ),
    Mutation(
        name="a name that nobody has is shown the iterations of one that somebody has",
        file=_SASL,
        old="        if self.has_password(name) or not shapes:\n",
        new="        if self.has_password(name) or shapes:\n",
        killed_by=_CHALLENGED,
    ),
    Mutation(
        name="names that nobody has are like those of the settings, too",
        file=_SASL,
        old="        seen = {*shapes, _OF_SETTINGS} if self._passwords else shapes\n",
        new="        seen = shapes\n",
        killed_by=_CHALLENGED,
    ),
    Mutation(
        name="salts of names that nobody has come of what is known to no client",
        file=_SASL,
        old="        self._secret = of_cluster.salt_secret or ",
        new="        self._secret = ",
        killed_by=_OF_SASL
        + "test_the_challenge_of_a_name_that_nobody_has_stays_when_others_come_and_go",
    ),
    Mutation(
        name="no request changes who is in the settings",
        file=_ALTER,
        old="            if name in configured:\n",
        new="            if not name:\n",
        killed_by=_OF_HANDLERS + "test_a_request_does_not_change_who_is_in_the_settings",
    ),
    Mutation(
        name="a hash is as long as its mechanism makes it",
        file=_ALTER,
        old="    if len(salted) != hashed().digest_size:\n",
        new="    if not hashed().digest_size:\n",
        killed_by=_UNACCEPTABLE,
    ),
    Mutation(
        name="a password is hashed often enough",
        file=_ALTER,
        old="    if not ITERATIONS_MIN <= asked.iterations <= ITERATIONS_MAX:\n",
        new="    if asked.iterations > ITERATIONS_MAX:\n",
        killed_by=_UNACCEPTABLE,
    ),
    Mutation(
        name="a login costs no more than it may",
        file=_ALTER,
        old="    if not ITERATIONS_MIN <= asked.iterations <= ITERATIONS_MAX:\n",
        new="    if asked.iterations < ITERATIONS_MIN:\n",
        killed_by=_UNACCEPTABLE,
    ),
    Mutation(
        name="a password has some salt, and not too much",
        file=_ALTER,
        old="    if not 0 < len(salt) <= SALT_BYTES_MAX:\n",
        new="    if salt is None:\n",
        killed_by=_UNACCEPTABLE,
    ),
    Mutation(
        name="a user's name can be in an ACL, and is what SCRAM looks up",
        file=_ALTER,
        old="    if not is_name(name):\n",
        new="    if not name:\n",
        killed_by=_UNACCEPTABLE,
    ),
    Mutation(
        name="a credential is changed once in a request",
        file=_ALTER,
        old="    if len(mechanisms) > len(set(mechanisms)):\n",
        new="    if not mechanisms:\n",
        killed_by=_OF_HANDLERS + "test_a_credential_is_changed_once_in_a_request",
    ),
    Mutation(
        name="who is refused does not keep the others",
        file=_ALTER,
        old="                state.users.check(changes)\n",
        new="                state.users.check(())\n",
        killed_by=_OF_HANDLERS + "test_what_is_not_there_is_not_deleted",
    ),
    Mutation(
        name="of a name that both have the settings are described",
        file=_DESCRIBE,
        old="        if name in configured:\n",
        new="        if not users.credentials(name):\n",
        killed_by=_OF_HANDLERS + "test_a_request_does_not_change_who_is_in_the_settings",
    ),
)
