"""What keeps everybody from being somebody else by a certificate."""

from tests.mutations import Mutation

_NAMES = "broker/network/distinguished_names.py"
_RULES = "broker/config/principal_rules.py"
_CONNECTION = "broker/network/tls_connection.py"
_OF_NAMES = "tests/broker/network/test_distinguished_names.py::"
_OF_RULES = "tests/broker/config/test_principal_rules.py::"
_OF_USERS = "tests/broker/network/test_users_by_certificate.py::"

MUTATIONS = (
    Mutation(
        name="a certificate says who a client is before its first request",
        file=_CONNECTION,
        old="                self._name_user()\n",
        new="",
        killed_by=_OF_USERS + "test_a_client_is_who_its_certificate_says",
    ),
    Mutation(
        name="with SASL a certificate makes nobody a user",
        file=_CONNECTION,
        old="        if self.session.requires_sasl:\n            return\n",
        new="",
        killed_by=_OF_USERS + "test_with_sasl_a_certificate_makes_nobody_a_user",
    ),
    Mutation(
        name="who is nobody by its certificate is not let in as one without",
        file=_CONNECTION,
        old="        if not user:\n",
        new="        if user is None:\n",
        killed_by=_OF_USERS + "test_a_certificate_without_a_name_lets_nobody_in",
    ),
    Mutation(
        name="whom no rule names is not let in",
        file=_CONNECTION,
        old="        if not user:\n",
        new='        if user == "":\n',
        killed_by=_OF_USERS + "test_rules_say_who_a_client_is_and_who_has_none_is_not_let_in",
    ),
    Mutation(
        name="a comma in a value does not end it",
        file=_NAMES,
        old="""r'[,=+<>#;"\\\\]|""",
        new="""r'[=+<>#;"\\\\]|""",
        killed_by=_OF_NAMES + "test_what_a_certificate_is_called",
    ),
    Mutation(
        name="what is equal in a value does not begin another",
        file=_NAMES,
        old="""r'[,=+<>#;"\\\\]|""",
        new="""r'[,+<>#;"\\\\]|""",
        killed_by=_OF_NAMES + "test_what_a_certificate_is_called",
    ),
    Mutation(
        name="a plus in a value is not the one between two",
        file=_NAMES,
        old="""r'[,=+<>#;"\\\\]|""",
        new="""r'[,=<>#;"\\\\]|""",
        killed_by=_OF_NAMES + "test_what_a_certificate_is_called",
    ),
    Mutation(
        name="a backslash in a value escapes nothing",
        file=_NAMES,
        old="""r'[,=+<>#;"\\\\]|""",
        new="""r'[,=+<>#;"]|""",
        killed_by=_OF_NAMES + "test_a_name_says_all_that_is_in_the_subject_and_nothing_else",
    ),
    Mutation(
        name="a number sign in a value does not make it bytes",
        file=_NAMES,
        old="""r'[,=+<>#;"\\\\]|""",
        new="""r'[,=+<>;"\\\\]|""",
        killed_by=_OF_NAMES + "test_what_is_written_otherwise",
    ),
    Mutation(
        name="names have no control characters",
        file=_NAMES,
        old=r"| +\Z|[\x00-\x1f\x7f-\x9f]",
        new=r"| +\Z",
        killed_by=_OF_NAMES + "test_a_name_has_no_control_characters",
    ),
    Mutation(
        name="what is not of its type is not made alike",
        file=_NAMES,
        old="value.content.decode(encoding)",
        new='value.content.decode(encoding, "replace")',
        killed_by=_OF_NAMES + "test_values_of_each_type",
    ),
    Mutation(
        name="a name begins with its most specific part",
        file=_NAMES,
        old='",".join(reversed(parts))',
        new='",".join(parts)',
        killed_by=_OF_NAMES + "test_what_a_certificate_is_called",
    ),
    Mutation(
        name="a client is who is signed for, and not who has signed",
        file=_NAMES,
        old="_FIELDS_BEFORE_SUBJECT: Final = 4",
        new="_FIELDS_BEFORE_SUBJECT: Final = 2",
        killed_by=_OF_NAMES + "test_the_issuer_is_not_the_subject",
    ),
    Mutation(
        name="names are not long",
        file=_NAMES,
        old="    if len(subject.whole) > SUBJECT_BYTES_MAX:\n",
        new="    if not subject.whole:\n",
        killed_by=_OF_NAMES + "test_a_long_subject_is_refused",
    ),
    Mutation(
        name="a length has one form",
        file=_NAMES,
        old="            if size < 0x80 or not long_size[0]:\n",
        new="            if not long_size:\n",
        killed_by=_OF_NAMES + "test_a_subject_that_is_none_is_refused",
    ),
    Mutation(
        name="an attribute is a type and a value, and nothing else",
        file=_NAMES,
        old="    if len(both) != 2:\n",
        new="    if len(both) < 2:\n",
        killed_by=_OF_NAMES + "test_a_subject_that_is_none_is_refused",
    ),
    Mutation(
        name="a rule is for those whose whole name matches",
        file=_RULES,
        old="self.pattern.fullmatch(name)",
        new="self.pattern.match(name)",
        killed_by=_OF_RULES + "test_who_a_client_is",
    ),
    Mutation(
        name="the first rule that matches counts",
        file=_RULES,
        old="for rule in rules if",
        new="for rule in list(rules)[::-1] if",
        killed_by=_OF_RULES + "test_who_a_client_is",
    ),
    Mutation(
        name="letters in rules are as in Java",
        file=_RULES,
        old="re.compile(pattern, re.ASCII)",
        new="re.compile(pattern)",
        killed_by=_OF_RULES + "test_classes_of_letters_are_as_in_java",
    ),
    Mutation(
        name="what Java reads otherwise is no pattern",
        file=_RULES,
        old='warnings.simplefilter("error", FutureWarning)',
        new='warnings.simplefilter("ignore", FutureWarning)',
        killed_by=_OF_RULES + "test_a_rule_that_is_none_is_told_with_the_setting",
    ),
    Mutation(
        name="a rule takes no group that its pattern has not",
        file=_RULES,
        old="<= groups:\n",
        new="<= 99:\n",
        killed_by=_OF_RULES + "test_a_rule_that_is_none_is_told_with_the_setting",
    ),
)
