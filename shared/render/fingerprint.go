package render

// The fingerprint of a pool's nodes: what they are made of. Two templates with the same fingerprint launch the same nodes.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// Parameters of a pool's template about its nodes. The template has outputs of the same names.
const (
	// Nodes is the fingerprint of the nodes.
	Nodes = "Nodes"
	// NodesSince is "" in an update that gives the nodes another fingerprint. In any other update it is the last value of the output. The
	// output is the first version of the launch template with the fingerprint.
	NodesSince = "NodesSince"
	// LaunchTemplateVersion is an output: the version of the launch template that the group launches.
	LaunchTemplateVersion = "LaunchTemplateVersion"
	// SubnetIDs are the subnets of the nodes. They are not part of the fingerprint, because an added subnet replaces no node.
	SubnetIDs = "SubnetIds"
)

// Fingerprint identifies what a pool's nodes are made of: the data of their launch template without its tags and its monitoring, and the
// time of their latest roll. An edit of tags or monitoring reaches new nodes only.
type Fingerprint struct {
	// Data is the SHA-256 of what rendering knows.
	Data string `json:"data"`
	// Parameters are the parameters of the stack that the data refers to, sorted.
	Parameters []string `json:"parameters"`
}

// newFingerprint returns the fingerprint of a rendered pool.
func newFingerprint(stack *Stack, rollAt string) (*Fingerprint, error) {
	h := sha256.New() // a hash returns no error
	if err := writeLaunchData(h, stack.Template); err != nil {
		return nil, err
	}
	h.Write([]byte("\x00" + rollAt))
	f := &Fingerprint{Data: hex.EncodeToString(h.Sum(nil)), Parameters: make([]string, 0, len(stack.Parameters))}
	for _, parameter := range stack.Parameters {
		if parameter.Name != SubnetIDs {
			f.Parameters = append(f.Parameters, parameter.Name)
		}
	}
	return f, nil
}

// Sum returns the fingerprint for the values of the stack's parameters.
func (f *Fingerprint) Sum(values map[string]string) string {
	h := sha256.New()
	h.Write([]byte(f.Data))
	for _, name := range f.Parameters {
		h.Write([]byte("\x00" + name + "\x00" + values[name]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The marks of the data of a pool's launch template: its first line, and the first line of its tags, which follow all other properties.
var (
	launchDataMark = []byte("\n      LaunchTemplateData:\n")
	launchTagsMark = []byte("\n        TagSpecifications:\n")
)

// The monitoring of instances. Fingerprints have the value that every pool had before spec.pools[].detailedMonitoring. So the default of
// that field keeps the fingerprints of pools that were deployed earlier.
var (
	monitoringOff = []byte("\n        Monitoring:\n          Enabled: false\n")
	monitoringOn  = []byte("\n        Monitoring:\n          Enabled: true\n")
)

// writeLaunchData writes the lines of a pool's template that describe the data of the launch template, without its tags and comments, and
// with monitoring on. No value of a spec contains a line of its own: encodeYAML escapes line breaks.
func writeLaunchData(w io.Writer, body []byte) error {
	_, after, found := bytes.Cut(body, launchDataMark)
	data, _, tagged := bytes.Cut(after, launchTagsMark)
	if !found || !tagged {
		return errors.New("the template has no launch template data that ends in tags")
	}
	data = bytes.Replace(data, monitoringOff, monitoringOn, 1)
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("#")) {
			_, _ = w.Write(line) // to a hash or a buffer
		}
	}
	return nil
}
