package view

import "strings"

// Tone is the color of a state by its meaning.
type Tone string

// The tones, as SGR parameters of ECMA-48.
const (
	Plain  Tone = ""
	Good   Tone = "32"
	Moving Tone = "33"
	Bad    Tone = "31"
	Quiet  Tone = "90"
)

// paint colors a text with the tone.
func (t Tone) paint(text string, color bool) string {
	if !color || t == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

// Paint colors a state with its tone.
func Paint(state string, color bool) string { return ToneOf(state).paint(state, color) }

// tones has the states that no pattern in ToneOf matches.
var tones = map[string]Tone{
	// Phases of clusters and of upgrades.
	"Ready": Good, "Done": Good, "Pending": Moving, "Converging": Moving, "Upgrading": Moving, "Deleting": Moving, "Stopped": Bad,
	"Failed":  Bad,
	"Deleted": Quiet, "Scheduled": Moving, "Delayed": Moving, "Checking": Moving, "Running": Moving, "Missed": Bad, "Unknown": Moving,
	// Nodes.
	"Draining": Moving, "Blocked": Bad, "Unreachable": Bad, "NotJoined": Bad, "NotReady": Bad,
	// A stack that CloudFormation does not have.
	"absent": Bad,
}

// ToneOf returns the tone of a phase, a node's state, or a CloudFormation status.
func ToneOf(state string) Tone {
	if tone, ok := tones[state]; ok {
		return tone
	}
	switch {
	case strings.HasSuffix(state, "_FAILED"), strings.Contains(state, "ROLLBACK"):
		return Bad
	case strings.HasSuffix(state, "_IN_PROGRESS"):
		return Moving
	case state == "DELETE_COMPLETE":
		return Quiet
	case strings.HasSuffix(state, "_COMPLETE"):
		return Good
	}
	return Plain
}

// ToneOfCondition returns the tone of a Kubernetes-style condition. True is Good. False is Moving while an operation
// is in flight, else Bad.
func ToneOfCondition(status, reason string) Tone {
	switch {
	case status == "True":
		return Good
	case status == "False" && reason != "Converging" && reason != "Upgrading" && reason != "Deleting":
		return Bad
	}
	return Moving
}
