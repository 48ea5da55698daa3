"""Helps exits.sh: answers questions of one conversation over efr's wire and tells what was recorded.

usage: exits.py SOCKET DIR MODE LINE
Sends LINE as a prompt (the scripted model runs it as one shell call), and then does as MODE says:
allow, deny, interrupt: answers the question so. wait: leaves it. two: two clients answer at once.
do:COMMAND runs a command of the shell while the question waits, and then answers allow.
always: allows and saves the rule; always:COMMAND runs a command before; always-phone: the same from a phone, then no.
do-not:COMMAND runs a command and answers nothing.
then:COMMAND answers allow and runs the command when the call has started; stop:COMMAND interrupts after it.
EFR_EXITS_MODE: the mode of the prompt.
Prints one JSON object: the events of the turn that tell of the exit, and the call's result.
"""
import json
import os
import subprocess
import sys
import threading
import uuid

from client import Client

KINDS = ("exit_requested", "exit_judged", "approval_requested", "approval_resolved", "approval_expired",
         "tool_call_started", "tool_call_completed", "home_file_changed", "turn_completed")
ENDS = ("turn_completed", "turn_failed", "turn_interrupted", "turn_cancelled")


def always(socket, conversation, call, origin):
    """Answers allow and saves the offered rule, as a client of a terminal; the reply, or the error's text."""
    client = Client(socket, origin=origin, tty="/dev/pts/none")
    try:
        return client.request("approval.respond", {
            "command_id": str(uuid.uuid4()), "conversation_id": conversation, "call_id": call,
            "decision": "allow", "always": True})
    except RuntimeError as err:
        return str(err)
    finally:
        client.close()


def respond(socket, conversation, call, decision):
    """Answers with a client of its own; the error's name when it was not taken."""
    client = Client(socket)
    try:
        client.request("approval.respond", {
            "command_id": str(uuid.uuid4()), "conversation_id": conversation, "call_id": call,
            "decision": decision})
        return "taken"
    except RuntimeError as err:
        return "not_found" if "not_found" in str(err) else str(err)
    finally:
        client.close()


def at_once(socket, conversation, call):
    """One yes and one no at the same moment; the two outcomes."""
    out, barrier = {}, threading.Barrier(2)

    def one(decision):
        barrier.wait()
        out[decision] = respond(socket, conversation, call, decision)

    threads = [threading.Thread(target=one, args=(word,)) for word in ("allow", "deny")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def main():
    socket, directory, mode, line = sys.argv[1:5]
    client = Client(socket)
    sway, wanted = os.environ.get("SWAYSOCK"), os.environ.get("EFR_EXITS_MODE")
    sent = client.request("prompt.send", {
        "command_id": str(uuid.uuid4()), "text": line, "new_conversation": True,
        **({"settings": {"mode": wanted}} if wanted else {}),
        "context": {"pwd": directory, **({"desktop": {"SWAYSOCK": sway}} if sway else {})}})
    conversation, out = sent["conversation_id"], {"events": []}
    client.start("conversation.subscribe", {"conversation_id": conversation, "after_seq": 0})
    for item in client.stream():
        found = item["events"] if item["kind"] == "snapshot" else [item] if item["kind"] == "event" else []
        for envelope in found:
            event = envelope["event"]
            if event["kind"] in KINDS:
                out["events"].append(event)
            if event["kind"] == "approval_requested":
                out["call"] = event["call_id"]
                if mode == "wait":
                    print(json.dumps(out), flush=True)
                    return
                if mode == "two":
                    out["two"] = at_once(socket, conversation, event["call_id"])
                elif mode == "interrupt":
                    client.request("turn.interrupt", {
                        "command_id": str(uuid.uuid4()), "conversation_id": conversation})
                elif mode in ("allow", "deny"):
                    respond(socket, conversation, event["call_id"], mode)
                elif mode.startswith(("then:", "stop:")):
                    respond(socket, conversation, event["call_id"], "allow")
                elif mode == "always-phone":
                    out["first"] = always(socket, conversation, event["call_id"], "phone")
                    respond(socket, conversation, event["call_id"], "deny")
                elif mode.startswith("always"):
                    if ":" in mode:
                        subprocess.run(mode.split(":", 1)[1], shell=True, check=True, stdout=subprocess.DEVNULL)
                    out["reply"] = always(socket, conversation, event["call_id"], "cli")
                    if isinstance(out["reply"], str):
                        respond(socket, conversation, event["call_id"], "deny")
                elif mode.startswith("do-not:"):
                    subprocess.run(mode[7:], shell=True, check=True, stdout=subprocess.DEVNULL)
                elif mode.startswith("do:"):
                    subprocess.run(mode[3:], shell=True, check=True, stdout=subprocess.DEVNULL)
                    respond(socket, conversation, event["call_id"], "allow")
            if event["kind"] == "tool_call_started" and mode.startswith(("then:", "stop:")):
                subprocess.run(mode[5:], shell=True, check=True, stdout=subprocess.DEVNULL)
                if mode.startswith("stop:"):
                    client.request("turn.interrupt", {
                        "command_id": str(uuid.uuid4()), "conversation_id": conversation})
            if event["kind"] in ENDS:
                out["end"] = event["kind"]
                print(json.dumps(out))
                return


try:
    main()
except ConnectionError:
    print(json.dumps({"events": [], "end": "the daemon is gone"}))
