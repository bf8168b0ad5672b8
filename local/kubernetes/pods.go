// Durations of pods on KWOK's nodes: none, unless their annotations set them.

package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Annotations of pods, in seconds such as "1" or "0.25".
const (
	// ReadyAfter is the time from the binding of a pod until it is Ready.
	ReadyAfter = "local.drover.run/ready-after-seconds"
	// EndsAfter is the time from the deletion of a pod until it ends. It ends after its grace period at the latest.
	EndsAfter = "local.drover.run/ends-after-seconds"
)

// podDelays are jq expressions, by stage. https://kwok.sigs.k8s.io/docs/user/stages-configuration/
var podDelays = map[string]string{
	"pod-ready": `.metadata.annotations["` + ReadyAfter + `"] | values | . + "s"`,
	// A pod without a remaining grace period is one whose deletion was requested: the API server deletes it with the next
	// write. The request is repeated only if that write does not happen.
	"pod-delete": `if .metadata.deletionGracePeriodSeconds == 0 then "1s" else [(.metadata.annotations["` + EndsAfter +
		`"] | values | tonumber), .metadata.deletionGracePeriodSeconds] | select(length == 2) | min | tostring + "s" end`,
}

// writePodStages writes KWOK's own stages of pods, with the delays.
func (c *ControlPlane) writePodStages() error {
	for _, stage := range podStages {
		b, err := os.ReadFile(filepath.Join(stagesDir(c.options.BinDir), stage+".yaml"))
		if err != nil {
			return fmt.Errorf("reading KWOK's stages: %w", err)
		}
		text := string(b)
		if delay := podDelays[stage]; delay != "" {
			// next precedes a member of the specification, like delay.
			const next = "\n  next:\n"
			if strings.Count(text, next) != 1 {
				return fmt.Errorf("KWOK's stage %s is not as expected: it must have one next", stage)
			}
			text = strings.Replace(text, next, "\n  delay:\n    durationFrom:\n      expressionFrom: '"+delay+"'"+next, 1)
		}
		if err := os.WriteFile(c.path(stage+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
