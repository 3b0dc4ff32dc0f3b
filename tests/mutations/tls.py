"""TLS: a connection that neither stands still nor goes round for ever, and shows what it should."""

from tests.mutations import Mutation

_STREAM = "broker/network/tls_stream.py"
_CONNECTION = "broker/network/tls_connection.py"
_SERVER = "broker/network/listener_tls.py"
_FILES = "broker/network/certificates.py"
_BETWEEN = "broker/peers/tls_frame_socket.py"
_OF_BETWEEN = "tests/broker/peers/test_peer_tls.py::"
_OF_STREAM = "tests/broker/network/test_tls_stream.py::"
_OF_LISTENER = "tests/broker/network/test_tls.py::"
_OF_CLIENTS = "tests/clients/test_tls.py::test_what_a_client_writes_it_reads"

MUTATIONS = (
    Mutation(
        name="a handshake that waits for more has nothing to go on with",
        file=_STREAM,
        old="        self._is_used_up = not received\n",
        new="        self._is_used_up = False\n",
        killed_by=f"{_OF_STREAM}test_hands_are_shaken_however_the_bytes_come",
    ),
    Mutation(
        name="nothing is encrypted before what was encrypted has gone",
        file=_STREAM,
        old="            if not self._send_records(records):\n                break\n",
        new="            self._send_records(records)\n",
        killed_by=f"{_OF_STREAM}"
        "test_what_is_sent_comes_byte_for_byte_through_a_socket_that_takes_little",
    ),
    Mutation(
        name="who reads nothing is not asked again and again whether it does",
        file="broker/network/connection.py",
        old=" and not self._flush_is_due and not self._is_blocked:\n",
        new=" and not self._flush_is_due:\n",
        killed_by="tests/broker/network/test_late_readers.py"
        "::test_others_are_served_while_a_part_of_a_request_waits_behind_unread_answers",
    ),
    Mutation(
        name="the rest of what has come is taken without asking for more",
        file=_STREAM,
        old="        if self.may_receive <= 0:\n",
        new="        if False:\n",
        killed_by=f"{_OF_STREAM}test_what_has_come_is_taken_without_asking_the_socket_for_more",
    ),
    Mutation(
        name="what was received and not taken is taken though the socket is silent",
        file=_CONNECTION,
        old="            self._shared.turn.after(self._receive_rest)\n",
        new="            self._is_asked_again = False\n",
        killed_by=f"{_OF_LISTENER}test_the_rest_of_a_record_is_taken_though_the_socket_is_silent",
    ),
    Mutation(
        name="what is encrypted and not sent waits for the socket",
        file=_CONNECTION,
        old="        self._is_blocked |= not self._stream.flush()\n",
        new="        self._stream.flush()\n",
        killed_by=f"{_OF_LISTENER}test_an_answer_that_is_read_late_comes_whole",
    ),
    Mutation(
        name="a stop waits for what is encrypted and not sent",
        file=_CONNECTION,
        old="        return bool(self._out) or self._stream.unsent_bytes > 0\n",
        new="        return bool(self._out)\n",
        killed_by=f"{_OF_LISTENER}test_a_stop_sends_what_is_encrypted",
    ),
    Mutation(
        name="who has to show a certificate is not served without",
        file=_SERVER,
        old="        context.verify_mode = _CLIENT_AUTH[settings.ssl_client_auth]\n",
        new="",
        killed_by=f"{_OF_LISTENER}test_clients_show_a_certificate_where_one_is_required",
    ),
    Mutation(
        name="a certificate that cannot be read leaves the one before it",
        file=_FILES,
        old="        except ConfigError as error:\n",
        new="        except KeyError as error:\n",
        killed_by=f"{_OF_LISTENER}test_a_certificate_that_was_renewed_is_shown_to_who_comes_then",
    ),
    Mutation(
        name="who has no certificate of the CA is no broker",
        file="broker/peers/peer_tls.py",
        old="    context.verify_mode = ssl.CERT_REQUIRED\n",
        new="    context.verify_mode = ssl.CERT_NONE\n",
        killed_by=f"{_OF_BETWEEN}test_who_has_no_certificate_of_the_ca_is_no_broker",
    ),
    Mutation(
        name="of another broker, too, what was received is taken though the socket is silent",
        file=_BETWEEN,
        old="            self._services.turn.after(self._receive_rest)\n",
        new="            self._is_asked_again = False\n",
        killed_by=f"{_OF_BETWEEN}test_the_rest_of_what_has_come_is_taken_though_the_socket_is_silent",
    ),
    Mutation(
        name="for another broker, too, what is encrypted waits for the socket",
        file=_BETWEEN,
        old="        self._is_blocked |= self._stream.unsent_bytes > 0\n",
        new="",
        killed_by=f"{_OF_BETWEEN}test_what_the_socket_does_not_take_at_once_is_sent_later",
    ),
    Mutation(
        name="brokers that speak without TLS are refused where it is required",
        file="broker/peers/strangers.py",
        old="        elif tls.value.is_required:\n",
        new="        elif False:\n",
        killed_by=f"{_OF_BETWEEN}test_who_begins_without_it_is_not_heard",
    ),
    Mutation(
        name="a broker is dialed without TLS only where it is not required",
        file="broker/peers/dialing.py",
        old=" and not tls.value.is_required:\n            await",
        new=":\n            await",
        killed_by=f"{_OF_BETWEEN}test_one_that_speaks_without_is_not_up_and_both_say_why",
    ),
    Mutation(
        name="who begins without TLS is taken where it need not be spoken",
        file="broker/peers/strangers.py",
        old="            context = tls.value.taking if speaks_tls else None\n",
        new="            context = tls.value.taking\n",
        killed_by=f"{_OF_BETWEEN}test_where_it_is_not_required_each_is_spoken_to_as_it_can",
    ),
    Mutation(
        name="who has much decrypted for nothing is cut off",
        file=_STREAM,
        old="            self._credit_bytes -= min(len(received), RECORD_BYTES_MAX)\n",
        new="            pass\n",
        killed_by=f"{_OF_STREAM}test_one_that_has_much_decrypted_for_nothing_is_cut_off",
    ),
    Mutation(
        name="what has content is not for nothing",
        file=_STREAM,
        old="            credit = self._credit_bytes + _BYTES_FOR_ONE * count\n",
        new="            credit = self._credit_bytes + count\n",
        killed_by=f"{_OF_STREAM}test_records_of_one_byte_are_received",
    ),
    Mutation(
        name="strangers keep no broker out",
        file="broker/peers/strangers.py",
        old=" >= _STRANGERS_MAX and not self._send_one_away():\n",
        new=" >= _STRANGERS_MAX:\n",
        killed_by=f"{_OF_BETWEEN}test_a_broker_gets_in_beside_any_number_of_strangers",
    ),
)
