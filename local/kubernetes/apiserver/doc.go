// Package apiserver is a Kubernetes API in memory, with just enough behind it for nodes to come and go with their pods:
// objects with UIDs, versions, selectors, patches and watches; evictions with the real API's rules; and, in place of the
// controllers, the scheduler and the kubelets, a few sentences that it holds true (see world.go).
//
// It is for accounts that come and go by the thousand in virtual time. Real API servers are in local/kubernetes; what both
// say to drains is compared by local/testkit/live/kube's tests and this package's own.
//
// There is no authentication, no admission, no server-side apply but "it is what was applied", and no pages of lists. What it does
// not know is an error that names it.
package apiserver
