// The periodic sync of kubelets: pods become Ready again after their node was NotReady.

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const (
	// podSyncInterval is the time between syncs. A kubelet syncs each pod once a minute.
	podSyncInterval = 2 * time.Second
	// recoveryTime is how long after a node became Ready a controller may still mark its pods NotReady, because it read the
	// node before.
	recoveryTime = time.Minute
)

// podSync does what KWOK does not. When a node becomes NotReady, node lifecycle sets the Ready condition of its pods to
// False, and never back. The kubelet sets it to True at its next sync. KWOK writes the status of a running pod only
// once. https://kubernetes.io/docs/concepts/architecture/nodes/#node-status
// https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/controller/util/node/controller_utils.go (MarkPodsNotReady)
type podSync struct {
	plane  *ControlPlane
	client *http.Client
	nodes  map[string]nodeRecovery
}

// nodeRecovery is the state of a node between syncs, by UID.
type nodeRecovery struct {
	// readySince is the last transition to Ready that was read.
	readySince string
	// until is the end of the recovery of the node's pods, or zero if the node was Ready since it joined.
	until time.Time
}

type object struct {
	Metadata struct {
		Name            string  `json:"name"`
		Namespace       string  `json:"namespace"`
		UID             string  `json:"uid"`
		ResourceVersion string  `json:"resourceVersion"`
		Deleted         *string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		ReadinessGates []struct {
			ConditionType string `json:"conditionType"`
		} `json:"readinessGates"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Conditions []struct {
			Type               string `json:"type"`
			Status             string `json:"status"`
			LastTransitionTime string `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

// condition returns the status of a condition, empty without one, and the time of its last transition.
func (o object) condition(kind string) (status, since string) {
	for _, c := range o.Status.Conditions {
		if c.Type == kind {
			return c.Status, c.LastTransitionTime
		}
	}
	return "", ""
}

// mayBeReady reports whether the containers and the readiness gates of a pod are ready. Node lifecycle changes the
// Ready condition alone.
func (o object) mayBeReady() bool {
	conditions := []string{"ContainersReady"}
	for _, gate := range o.Spec.ReadinessGates {
		conditions = append(conditions, gate.ConditionType)
	}
	return !slices.ContainsFunc(conditions, func(kind string) bool {
		status, _ := o.condition(kind)
		return status != "True"
	})
}

// syncPods syncs until the control plane stops. While the API server does not answer, it retries as a kubelet does.
func (c *ControlPlane) syncPods() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-c.stopped
		cancel()
	}()
	s := &podSync{plane: c, client: c.client(), nodes: map[string]nodeRecovery{}}
	defer s.client.CloseIdleConnections()
	tick := time.NewTicker(podSyncInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.stopped:
			return
		case <-tick.C:
		}
		_ = s.sync(ctx) // the next sync retries
	}
}

// sync recovers the pods of each node that became Ready again.
func (s *podSync) sync(ctx context.Context) error {
	nodes, err := s.list(ctx, "/api/v1/nodes?resourceVersion=0")
	if err != nil {
		return err
	}
	previous := s.nodes
	s.nodes = map[string]nodeRecovery{}
	var failures []error
	for _, node := range nodes {
		recovery, seen := previous[node.Metadata.UID]
		ready, since := node.condition("Ready")
		if ready == "True" && recovery.readySince != since {
			recovery.readySince = since
			if seen {
				recovery.until = time.Now().Add(recoveryTime)
			}
		}
		if recovery.readySince != "" {
			s.nodes[node.Metadata.UID] = recovery
		}
		if ready == "True" && time.Now().Before(recovery.until) {
			failures = append(failures, s.recover(ctx, node.Metadata.Name))
		}
	}
	return errors.Join(failures...)
}

// recover sets the pods of a node Ready that its NotReady time left behind.
func (s *podSync) recover(ctx context.Context, node string) error {
	pods, err := s.list(ctx, "/api/v1/pods?fieldSelector="+url.QueryEscape("spec.nodeName="+node))
	if err != nil {
		return err
	}
	var remaining []object
	for _, pod := range pods {
		ready, _ := pod.condition("Ready")
		if pod.Metadata.Deleted == nil && pod.Status.Phase == "Running" && ready == "False" && pod.mayBeReady() {
			remaining = append(remaining, pod)
		}
	}
	if len(remaining) == 0 {
		return nil
	}
	// The node is read after its pods, and each patch names the pod's version: if node lifecycle marks the pod again,
	// either the node is NotReady here, or the patch is a conflict.
	body, err := s.plane.read(ctx, s.client, "/api/v1/nodes/"+node)
	if err != nil {
		return err
	}
	var now object
	if err := json.Unmarshal(body, &now); err != nil {
		return err
	}
	if ready, _ := now.condition("Ready"); ready != "True" {
		return nil
	}
	var failures []error
	for _, pod := range remaining {
		failures = append(failures, s.markReady(ctx, pod))
	}
	s.plane.options.Log.Info("pods are Ready again", "cluster", s.plane.options.Name, "node", node, "pods", len(remaining))
	return errors.Join(failures...)
}

func (s *podSync) markReady(ctx context.Context, pod object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},
		"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`,
		pod.Metadata.ResourceVersion, time.Now().UTC().Format(time.RFC3339))
	address := s.plane.Endpoint + "/api/v1/namespaces/" + pod.Metadata.Namespace + "/pods/" + pod.Metadata.Name + "/status"
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, bytes.NewReader(patch))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.plane.AdminToken)
	req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("marking pod %s/%s Ready: %s", pod.Metadata.Namespace, pod.Metadata.Name, res.Status)
	}
	return nil
}

func (s *podSync) list(ctx context.Context, path string) ([]object, error) {
	body, err := s.plane.read(ctx, s.client, path)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []object }
	err = json.Unmarshal(body, &list)
	return list.Items, err
}
