// Package apiserver is a Kubernetes API in memory, for nodes that join and leave with their pods. It has objects with
// UIDs, versions, selectors, patches and watches, and evictions with the real API's rules. A few invariants replace the
// controllers, the scheduler and the kubelets: see world.go.
//
// It is for accounts in virtual time, which tests create and discard by the thousand. Package kubernetes runs real API
// servers. The tests of local/testkit/live/kube and of this package compare the answers of both to drains.
//
// There is no authentication, admission or pagination. Server-side apply makes an object equal to the applied one. What
// the server does not support is an error that names it.
package apiserver
