"""S4 "Context Size Monitoring", block 10: ours sends the same alerts on the way up, and records the same readings.

Fault of the seed: after CRITICAL the next checks at the same size send DANGER and WARNING as well, and no alert is
ever sent again; ours sends one for each entry into a fuller zone.
"""

from datetime import UTC, datetime
from types import SimpleNamespace

import ctxgc

NOW = datetime(2026, 1, 2, tzinfo=UTC)
handled = []
monitor_agent = SimpleNamespace(handle_alert=handled.append)


def now():
    return NOW


# -- the block


class ContextMonitor:
    def __init__(self):
        self.history = []
        self.warnings_sent = []

    def check_and_alert(self, context_size: int, context_limit: int):
        """
        Monitor context size and send alerts at thresholds
        """
        ratio = context_size / context_limit

        if ratio >= 0.95 and 'critical' not in self.warnings_sent:
            self.send_alert('CRITICAL', ratio)
            self.warnings_sent.append('critical')

        elif ratio >= 0.85 and 'danger' not in self.warnings_sent:
            self.send_alert('DANGER', ratio)
            self.warnings_sent.append('danger')

        elif ratio >= 0.70 and 'warning' not in self.warnings_sent:
            self.send_alert('WARNING', ratio)
            self.warnings_sent.append('warning')

        # Log history
        self.history.append({
            'timestamp': now(),
            'size': context_size,
            'ratio': ratio
        })

    def send_alert(self, level: str, ratio: float):
        """Send alert to Monitor agent"""
        message = {
            'type': 'CONTEXT_SIZE_ALERT',
            'level': level,
            'ratio': ratio,
            'recommendation': self.get_recommendation(level)
        }
        monitor_agent.handle_alert(message)

    def get_recommendation(self, level: str) -> str:
        recommendations = {
            'WARNING': "Consider pruning non-essential context soon",
            'DANGER': "Prepare checkpoint and pruning strategy",
            'CRITICAL': "Immediate action required - create checkpoint and prune"
        }
        return recommendations.get(level, "Monitor context size")


# -- ours

sent = []
theirs, ours = ContextMonitor(), ctxgc.ContextMonitor(on_alert=sent.append, clock=now)
for size in (100, 700, 720, 850, 900, 950):
    theirs.check_and_alert(size, 1000)
    ours.check_and_alert(size, 1000)
assert sent == handled
assert [alert["level"] for alert in sent] == ["WARNING", "DANGER", "CRITICAL"]
assert ours.history == theirs.history
assert ours.warnings_sent == theirs.warnings_sent
for level in ("WARNING", "DANGER", "CRITICAL", "ANYTHING"):
    assert ours.get_recommendation(level) == theirs.get_recommendation(level)

handled.clear()
again = ContextMonitor()
for _ in range(4):
    again.check_and_alert(970, 1000)
assert [alert["level"] for alert in handled] == ["CRITICAL", "DANGER", "WARNING"]  # the fault
