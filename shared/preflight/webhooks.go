package preflight

import "fmt"

// webhooks checks webhooks with failurePolicy Fail. One that does not answer blocks every request that it matches. The API server calls
// it for each new pod, eviction and node.
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#failure-policy
func webhooks(r *report, f *Facts, _ *Plan) {
	var dead, alone, outside []string
	for _, w := range f.Survey.Webhooks {
		if w.Service == "" {
			outside = append(outside, fmt.Sprintf("%s of %s (%s, called for %s)", w.Name, w.Configuration, w.Host, list(w.Matches)))
			continue
		}
		finding := fmt.Sprintf("%s of %s (service %s, called for %s)", w.Name, w.Configuration, w.Service, list(w.Matches))
		switch w.Endpoints {
		case 0:
			dead = append(dead, finding)
		case 1:
			alone = append(alone, finding)
		}
	}
	if len(dead) > 0 {
		r.block("Start the webhook's pods, delete its configuration, or set its failurePolicy to Ignore.",
			"webhooks that must answer and have no ready endpoint: %s", list(dead))
	}
	if len(alone) > 0 {
		r.warn("Give it a second replica and a budget: while its only pod is replaced, pods can be neither started nor evicted.",
			"webhooks with one ready endpoint: %s", list(alone))
	}
	if len(outside) > 0 {
		r.warn("Make sure that they answer: while one does not, the requests that it is called for are refused.",
			"webhooks outside the cluster, which drover cannot check: %s", list(outside))
	}
}
