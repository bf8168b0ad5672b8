package eks

// Nodes: what the kubelets of EC2 instances register, and what the cloud controller removes.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/local/aws/ec2"
)

// networkAnnotation marks nodes with a running network plugin for KWOK: see local/kubernetes/stages.yaml.
const networkAnnotation = "local.drover.run/network"

// Instances become nodes here.
var _ ec2.Nodes = (*Service)(nil)

// RegisterNode creates the Node object of an instance with the instance's role, like its kubelet. It returns an error, which the kubelet
// would log, if the node cannot join: no such cluster, a wrong endpoint or authority in its user data, no EC2_LINUX access entry of its
// role, or a refusal of the API server.
func (s *Service) RegisterNode(ctx context.Context, n ec2.Node) error {
	c, plane, err := s.admit(n)
	if err != nil {
		return err
	}
	client, err := plane.Client("system:node:"+n.Name, []string{"system:nodes", "system:authenticated"})
	if err != nil {
		return err
	}
	s.mu.Lock()
	ready := c.networkReady
	s.mu.Unlock()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(nodeObject(n, ready, s.config.Clock.Now().UnixNano()))
	if err != nil {
		return err
	}
	err = patiently(ctx, func() error {
		_, err := client.Resource(nodeResource).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("nodes %q: %w", n.Name, err)
	}
	s.mu.Lock()
	c.nodes[n.InstanceID] = n.Name
	becameReady := c.networkReady && !ready
	s.mu.Unlock()
	if becameReady {
		return c.markNetworkReady(ctx, n.Name)
	}
	return nil
}

// admit checks whether a node may join, and finds its cluster.
func (s *Service) admit(n ec2.Node) (*cluster, ControlPlane, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(n.Cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("dial tcp: lookup %s: no such host (there is no cluster %q)", n.Endpoint, n.Cluster)
	}
	ca, _ := base64.StdEncoding.DecodeString(n.CertificateAuthority)
	switch {
	case c.Status == creating || c.Status == failed || c.Status == deleting:
		return nil, nil, fmt.Errorf("cluster %s is %s", c.Name, c.Status)
	case n.Endpoint != c.Endpoint:
		return nil, nil, fmt.Errorf("dial %s: the API server of cluster %s is %s", n.Endpoint, c.Name, c.Endpoint)
	case base64.StdEncoding.EncodeToString(ca) != c.CertificateAuthority.Data:
		return nil, nil, fmt.Errorf("tls: failed to verify certificate: x509: certificate signed by unknown authority")
	case n.RoleARN == "":
		return nil, nil, fmt.Errorf("Unauthorized: the instance has no role to sign in with")
	}
	e := c.entries[n.RoleARN]
	if e == nil || e.Type != linuxEntry {
		return nil, nil, fmt.Errorf("Unauthorized: role %s has no access entry of type EC2_LINUX in cluster %s", n.RoleARN, c.Name)
	}
	return c, c.plane, nil
}

// nodeObject is the first object that the kubelet of AL2023 posts. It is NotReady until a network plugin runs.
func nodeObject(n ec2.Node, networkReady bool, boot int64) *corev1.Node {
	annotations := map[string]string{"alpha.kubernetes.io/provided-node-ip": n.Address, "kwok.x-k8s.io/node": "fake"}
	if networkReady {
		annotations[networkAnnotation] = "ready"
	}
	labels := map[string]string{
		corev1.LabelArchStable: n.Architecture, corev1.LabelOSStable: "linux", corev1.LabelHostname: n.Name,
		corev1.LabelInstanceTypeStable: n.InstanceType, corev1.LabelTopologyZone: n.Zone, corev1.LabelTopologyRegion: n.Region,
	}
	for k, v := range n.Labels {
		labels[k] = v
	}
	capacity, allocatable := resources(n)
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{ProviderID: n.ProviderID},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: n.Address}, {
					Type: corev1.NodeHostName, Address: n.Name,
				}, {Type: corev1.NodeInternalDNS, Address: n.Name},
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
				Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: " +
					"cni plugin not initialized",
			}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: n.Architecture, OperatingSystem: "linux", OSImage: n.OSImage, KernelVersion: "6.12.0-amzn2023",
				ContainerRuntimeVersion: "containerd://2.1.5", KubeletVersion: n.KubeletVersion, MachineID: n.InstanceID, SystemUUID: n.InstanceID,
				BootID: fmt.Sprintf("%x", boot),
			},
		},
	}
	for _, t := range n.Taints {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return node
}

// resources returns the capacity of a node, and the part that nodeadm leaves to pods.
// https://github.com/awslabs/amazon-eks-ami: nodeadm's reserved resources
func resources(n ec2.Node) (capacity, allocatable corev1.ResourceList) {
	// 6 % of the first core, 1 % of the second, half a percent of the next two, and a quarter of a percent of all others.
	tenths := int64(0) // of a milli-CPU
	for core := range n.VCPUs {
		switch {
		case core == 0:
			tenths += 600
		case core == 1:
			tenths += 100
		case core < 4:
			tenths += 50
		default:
			tenths += 25
		}
	}
	reservedMilli := tenths / 10
	const eviction = 100
	reservedMiB := int64(255 + 11*n.MaxPods + eviction)
	list := func(milli, mib, diskGiB int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(milli, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(max(mib, 0)<<20, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(int64(n.MaxPods), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(diskGiB<<30, resource.BinarySI),
		}
	}
	disk := int64(n.DiskGiB)
	return list(int64(n.VCPUs)*1000, int64(n.MemoryMiB), disk), list(int64(n.VCPUs)*1000-reservedMilli, int64(n.MemoryMiB)-reservedMiB,
		disk*9/10)
}

// provideNetwork makes nodes Ready once the network plugin is installed.
func (s *Service) provideNetwork(ctx context.Context, c *cluster) {
	s.mu.Lock()
	c.networkReady = true // nodes that register later are Ready without a network plugin
	s.mu.Unlock()
	var nodes *unstructured.UnstructuredList
	err := patiently(ctx, func() (err error) {
		nodes, err = c.admin.Resource(nodeResource).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		s.config.Log.Warn("marking nodes network-ready failed", "cluster", c.Name, "error", err)
		return
	}
	for _, n := range nodes.Items {
		if err := c.markNetworkReady(ctx, n.GetName()); err != nil {
			s.config.Log.Warn("marking a node network-ready failed", "cluster", c.Name, "node", n.GetName(), "error", err)
		}
	}
}

func (c *cluster) markNetworkReady(ctx context.Context, node string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{networkAnnotation: "ready"}}})
	if err != nil {
		return err
	}
	err = patiently(ctx, func() error {
		_, err := c.admin.Resource(nodeResource).Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// DeregisterNode deletes the Node object of a terminated instance, like the cloud controller, and its pods, as the pod garbage collector
// would a minute later. Otherwise a DaemonSet's rollout would count them as unavailable during that minute. An absent node or cluster is no
// error.
func (s *Service) DeregisterNode(ctx context.Context, cluster, name string) error {
	s.mu.Lock()
	c, ok := s.clusters[cluster]
	if !ok || c.admin == nil || c.Status == deleting {
		s.mu.Unlock()
		return nil
	}
	for instance, node := range c.nodes {
		if node == name {
			delete(c.nodes, instance)
		}
	}
	client := c.admin
	s.mu.Unlock()
	if err := remove(ctx, client, nodeResource, "", name); err != nil {
		return err
	}
	return removePods(ctx, client, name)
}

// removePods ends the pods of a deleted node without grace, because no kubelet would report their end.
func removePods(ctx context.Context, client dynamic.Interface, node string) error {
	var pods *unstructured.UnstructuredList
	err := patiently(ctx, func() (err error) {
		pods, err = client.Resource(podResource).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		return err
	})
	if err != nil {
		return err
	}
	now := int64(0)
	for _, pod := range pods.Items {
		err := patiently(ctx, func() error {
			return client.Resource(podResource).Namespace(pod.GetNamespace()).Delete(ctx, pod.GetName(), metav1.DeleteOptions{
				GracePeriodSeconds: &now,
			})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
