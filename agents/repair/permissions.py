"""`Permissions`: asks before tests run, an unproved patch is kept, or the user's tree is written to."""

from dataclasses import dataclass

from agents.api.agent_spec import PermissionMode
from agents.api.errors import PermissionDenied
from agents.api.events import RunEventType
from agents.runs.approvals import ApprovalRequest, Approvals, new_approval_id
from agents.runs.event_log import EventLog
from agents.tools.tool import Effect

AGENT = "repair"


@dataclass(frozen=True, slots=True)
class Permissions:
    """The approvals of one repair.

    Attributes:
        approvals: where questions wait for a decision.
        log: the run's events.
        run: the run's id.
        mode: its permission mode.
        folder: the user's tree.
    """

    approvals: Approvals
    log: EventLog
    run: str
    mode: PermissionMode
    folder: str

    async def ask(
        self,
        tool: str,
        effect: Effect,
        *,
        target: str,
        arguments: str,
        reason: str,
        diff: str = "",
        node: str = "",
        always: bool = False,
    ) -> None:
        """Return if an action is allowed.

        Args:
            tool: name of the action, as it is shown.
            effect: what it does to the world.
            target: what it acts on, in a few words.
            arguments: what is shown in full; it ends with the diff.
            reason: why it is asked.
            diff: what it changes in files; empty if it changes none.
            node: of the events.
            always: ask a person in the mode `auto`, too.

        Raises:
            PermissionDenied: the mode or a person denies it, or nobody can be asked.
        """
        if self.mode == "deny":
            raise PermissionDenied(f"{tool} is denied: the permission mode is deny.")
        if self.mode == "auto" and not always:
            return
        request = ApprovalRequest(
            id=new_approval_id(),
            run=self.run,
            agent=AGENT,
            tool=tool,
            arguments=arguments,
            target=target,
            effects=frozenset({effect}),
            folder=self.folder,
            reason=reason,
            diff=diff,
        )
        fields = {"approval": request.id, "tool": tool, "target": target[:300]}
        self.log.append(RunEventType.APPROVAL_REQUESTED, node=node, agent=node, **fields)
        allowed, why = False, "The run has ended."
        try:
            await self.approvals.ask(request)
            allowed, why = True, ""
        except PermissionDenied as error:
            why = str(error)
            raise
        finally:
            self.log.append(
                RunEventType.APPROVAL_RESOLVED,
                node=node,
                agent=node,
                **fields,
                allowed=allowed,
                reason=why,
            )
