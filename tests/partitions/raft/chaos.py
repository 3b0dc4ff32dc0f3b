"""A cluster to which everything happens that can, drawn from one source of chance."""

from __future__ import annotations

from random import Random

from tests.scenarios.cluster import Cluster
from tests.scenarios.disk import Image
from tidemark.partitions.raft.group import Group, Limits
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId


class Chaos:
    """Loses, doubles, reorders, crashes, campaigns; `invariants` of the cluster look on."""

    def __init__(
        self, random: Random, *, size: int, is_lossy: bool = False, is_damaging: bool = False
    ) -> None:
        """With `is_lossy`, crashes of a minority take acknowledged records with them; with
        `is_damaging`, they take epochs and votes as well, of one replica at a time."""
        self.random = knobs = random
        limits = Limits(
            append_bytes_max=knobs.choice([1, 2, 32]),
            window_bytes=knobs.choice([1, 4, 64]),
            early_bytes_max=knobs.choice([64, 200, 4096]),
        )
        self.spare = knobs.choice([0, 1, 2])
        self.cluster = Cluster(size + self.spare, voters=range(1, size + 1), limits=limits)
        self.is_lossy = is_lossy
        self.is_damaging = is_damaging
        self.unclean: set[int] = set()
        self.doubtful: set[int] = set()
        self._images: dict[int, list[Image]] = {}  # of each disk, earlier ones
        self.written = 0
        self._strikes = knobs.choice([0.0, 0.5, 0.9])
        self._led: set[int] = set()
        self._doomed: dict[int, int] = {}  # nodes, and in how many steps they crash
        self._actions = [
            (40, self.deliver),
            (20, self.persist),
            (12, self.append),
            (knobs.choice([1, 5]), self.campaign),
            (knobs.choice([0, 3]), self.lose_or_double),
            (knobs.choice([0, 1, 3]), self.crash),
            (4, self.restart),
            (3, self.beat),
            (2, self.lose_leader),
            (3, self.reset_peer),
            (1, self.pause),
            (knobs.choice([0, 1, 4]), self.change_leader_among_some),
            (knobs.choice([0, 2]), self.change),
            (knobs.choice([0, 1]), self.trim),
        ]
        if is_damaging:
            self._actions += [(10, self.look), (2, self.crash), (6, self.restart)]

    def run(self, steps: int) -> None:
        weights = [weight for weight, _ in self._actions]
        actions = [action for _, action in self._actions]
        for action in self.random.choices(actions, weights, k=steps):
            action()
            self.strike_new_leaders()

    def strike_new_leaders(self) -> None:
        """Crash them soon after their election: at any time is hardly ever just then (Figure 8)."""
        for node in self.cluster.nodes.values():
            if node.group.is_leader and node.group.epoch not in self._led:
                self._led.add(node.group.epoch)
                if self.random.random() < self._strikes:
                    self._doomed[node.id] = self.random.choice([1, 5, 20, 60])
        for doomed in [*self._doomed]:
            self._doomed[doomed] -= 1
            if not self._doomed[doomed]:
                del self._doomed[doomed]
                if doomed in self.cluster.nodes and len(self.cluster.nodes) > 1:
                    self.cluster.crash(doomed, keep=self.random.randrange(3))

    def calm(self) -> None:
        """All come back, nothing more is lost: one leads, and all logs become the same."""
        cluster = self.cluster
        while cluster.down:
            self.restart()
        cluster.heal()
        for _ in range(12):
            for node in cluster.nodes.values():
                node.do(lambda group: group.leader_lost())
            for node in [*cluster.nodes.values()]:
                if not any(other.group.is_leader for other in cluster.nodes.values()):
                    node.do(lambda group: group.campaign())
                cluster.settle()
            cluster.reconnect()
            cluster.settle()
            for node in [*cluster.nodes.values()]:
                node.do(lambda group: group.abort_hand_over())
                node.do(lambda group: group.check_quorum())
                cluster.settle()
            leaders = [n for n in cluster.nodes.values() if n.group.is_serving]
            if len(leaders) == 1 and self._is_calm(leaders[0].group):
                break
        (leader,) = leaders
        leader.append(b"!")
        cluster.settle()
        cluster.beat()
        assert leader.committed == leader.log
        for voter in leader.group.config.voters:
            node = cluster.nodes[voter]
            start = max(node.disk.written.start.offset, leader.disk.written.start.offset)
            assert node.group.shape.last == leader.group.shape.last
            assert node.group.committed == leader.group.committed
            assert (
                node.disk.written.content[start - node.disk.written.start.offset :]
                == (leader.log[start - leader.disk.written.start.offset :])
            )
            assert not node.group.has_in_flight

    def _is_calm(self, leader: Group) -> bool:
        nodes = self.cluster.nodes
        is_joint = leader.config.is_joint
        return not (is_joint or any(nodes[n].group.in_doubt for n in leader.config.members))

    def any_node(self) -> int:
        return self.random.choice([*self.cluster.nodes])

    def deliver(self) -> None:
        messages = self.cluster.messages
        if messages:
            index = 0 if self.random.random() < 0.6 else self.random.randrange(len(messages))
            self.cluster.deliver(messages.pop(index))

    def persist(self) -> None:
        node = self.cluster[self.any_node()]
        if node.disk.pending:
            if self.is_damaging and self.random.random() < 0.1:
                self._images.setdefault(node.id, []).append(node.disk.durable.copy())
            node.persist(self.random.choice(node.disk.pending))

    def append(self) -> None:
        for node in self.cluster.nodes.values():
            if node.group.is_accepting:
                size = self.random.choice([1, 1, 3])
                data = bytes((self.written + i) % 251 for i in range(size))
                self.written += size
                node.append(data)
                return

    def campaign(self) -> None:
        is_migration = self.random.random() < 0.1
        self.cluster[self.any_node()].do(lambda g: g.campaign(is_migration=is_migration))

    def change_leader_among_some(self) -> None:
        """As if the others were cut off: some elect one of theirs, and get a few steps further."""
        nodes = [*self.cluster.nodes]
        some = self.random.sample(nodes, k=self.random.randint(1, len(nodes)))
        for node in some:
            self.cluster[node].do(lambda g: g.leader_lost())
        self.cluster[some[0]].do(lambda g: g.campaign())
        for _ in range(self.random.choice([4, 5, 6, 8])):
            for node in some:
                self.cluster[node].persist()
            for envelope in [*self.cluster.messages]:
                if envelope.source in some and envelope.to in some:
                    self.cluster.messages.remove(envelope)
                    self.cluster.deliver(envelope)

    def lose_or_double(self) -> None:
        messages = self.cluster.messages
        if messages:
            index = self.random.randrange(len(messages))
            if self.random.random() < 0.5:
                del messages[index]
            else:
                messages.append(messages[index])

    def crash(self) -> None:
        cluster = self.cluster
        if len(cluster.nodes) <= 1:
            return
        victim = self.any_node()
        if self.is_damaging:
            self._note_clean()
        keep = self.random.randrange(3)
        lose = 0
        nodes = cluster.nodes.values()
        has_copies = all(len(node.group.config.voters) > 1 for node in nodes)
        if self.is_lossy and has_copies and not self.unclean - {victim}:
            lose = self.random.randrange(4)
            if lose:
                self.unclean.add(victim)
        cluster.crash(victim, keep=keep, lose=lose, back_to=self._damaged(victim))

    def _damaged(self, victim: int) -> Image | None:
        """What is left on the disk, if it is damaged now."""
        images = self._images.get(victim)
        groups = [node.group for node in self.cluster.nodes.values()]
        has_copies = all(len(group.config.voters) > 1 for group in groups)
        if not images or not has_copies or self.doubtful - {victim}:
            return None
        self.doubtful.add(victim)
        image, durable = self.random.choice(images), self.cluster[victim].disk.durable
        if self.random.random() < 0.3:  # a vote may be whole where the log is not
            image.hard_state = durable.hard_state
        return image

    def _note_clean(self) -> None:
        for those in (self.unclean, self.doubtful):
            for node in [*those]:
                if node in self.cluster.nodes and self.cluster[node].group.is_clean:
                    those.discard(node)

    def restart(self) -> None:
        if self.cluster.down:
            node = self.random.choice([*self.cluster.down])
            self.cluster.restart(
                node, is_clean=node not in self.unclean, in_doubt=node in self.doubtful
            )

    def beat(self) -> None:
        self.cluster.beat()

    def lose_leader(self) -> None:
        self.cluster[self.any_node()].do(lambda g: g.leader_lost())

    def reset_peer(self) -> None:
        other = NodeId(self.any_node())
        self.cluster[self.any_node()].do(lambda g: g.peer_reset(other))

    def pause(self) -> None:
        node = self.cluster[self.any_node()]
        others = [other for other in self.cluster.nodes if other != node.id]
        if node.dead:
            node.dead.clear()
        elif others:
            node.dead = {*self.random.sample(others, k=self.random.randrange(len(others)))}
        node.do(lambda g: g.check_quorum())
        self._note_clean()

    def look(self) -> None:
        """As a leader is made to do that has waited for too long."""
        self.cluster[self.any_node()].do(lambda g: g.check_quorum())

    def change(self) -> None:
        def attempt(group: Group) -> None:
            try:
                match draw:
                    case 0:
                        for spare in spares:
                            group.add_learner(NodeId(spare))
                    case 1:
                        voters = self.random.sample([*everyone], k=size)
                        group.change_config(tuple(NodeId(voter) for voter in voters))
                    case 2:
                        group.hand_over(NodeId(self.any_node()))
                    case _:
                        group.abort_hand_over()
            except RequestError:
                pass

        everyone = {*self.cluster.nodes, *self.cluster.down}
        draw = self.random.randrange(4)
        leaders = [node for node in self.cluster.nodes.values() if node.group.is_leader]
        if leaders:
            leader = self.random.choice(leaders)
            spares = everyone - {*leader.group.config.members}
            size = self.random.choice([1, 3, len(everyone)])
            size = min(size, len(everyone))
            leader.do(attempt)

    def trim(self) -> None:
        node = self.cluster[self.any_node()]
        start, end = node.group.shape.start_offset, node.group.committed.offset
        durable = node.disk.durable.end_offset
        if start < min(end, durable):
            new = self.random.randrange(start, min(end, durable)) + 1
            if not node.disk.pending:
                node.disk.trim(type(end)(new))
                node.do(lambda g: g.trim(type(end)(new)))
