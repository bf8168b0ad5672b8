package ec2

// Booting: from a running machine to a Kubernetes node. Errors appear on the instance's console, as on AWS, and the node never joins.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Taint of a node.
type Taint struct{ Key, Value, Effect string }

// Node is the registration of an instance with its cluster.
type Node struct {
	// Cluster, Endpoint, CertificateAuthority (base64) and ServiceCIDR come from its user data.
	Cluster, Endpoint, CertificateAuthority, ServiceCIDR string
	// Name is the private DNS name, ProviderID aws:///<zone>/<instance>.
	Name, ProviderID string
	// RoleARN is the role of its instance profile, by which access entries identify nodes.
	RoleARN string

	InstanceID, InstanceType, ImageID string
	Region, Zone, Subnet              string
	// Architecture is Kubernetes' amd64 or arm64.
	Architecture string
	// KubeletVersion such as v1.36.3-eks-0e3cf2b.
	KubeletVersion string
	// Address is the private IPv4 address.
	Address string
	Spot    bool

	Labels       map[string]string
	Taints       []Taint
	KubeletFlags []string
	MaxPods      int
	VCPUs        int
	MemoryMiB    int
	DiskGiB      int
}

// boot processes the user data and registers the node.
func (s *Service) boot(ctx context.Context, i *instance) {
	s.log(i, "kernel", "Linux version 6.12 Amazon Linux 2023 ("+i.image.Name+")")
	config, err := parseUserData(i.userData)
	if err != nil {
		s.log(i, "nodeadm", "fatal: "+err.Error())
		return
	}
	if s.config.Clock.Work(ctx, bootWork) != nil {
		return
	}
	for n, script := range config.scripts {
		files, err := s.runScript(ctx, i, script)
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if err == nil {
				err = config.addNodeConfig([]byte(files[path]))
			}
		}
		if err != nil {
			s.log(i, "cloud-init", fmt.Sprintf("part-%03d: %v", n+1, err))
			s.log(i, "cloud-init", "Failed to run module scripts-user: the kubelet is not started")
			return
		}
	}
	if config.node == nil {
		s.log(i, "nodeadm", "no NodeConfig in user data: nothing to join")
		return
	}
	node, err := s.node(i, config.node)
	if err != nil {
		s.log(i, "nodeadm", "fatal: "+err.Error())
		return
	}
	if i.image.Silent {
		s.log(i, "systemd", "kubelet.service: Main process exited, code=exited, status=1/FAILURE")
		return
	}
	s.mu.Lock()
	nodes := s.nodes
	s.mu.Unlock()
	if nodes == nil {
		s.log(i, "kubelet", "no Kubernetes here to join")
		return
	}
	s.log(i, "kubelet", "Attempting to register node "+node.Name)
	for last := ""; ; {
		err := nodes.RegisterNode(ctx, node)
		if err == nil {
			break
		}
		if err.Error() != last {
			last = err.Error()
			s.log(i, "kubelet", "Unable to register node with API server: "+last)
		}
		if s.config.Clock.Timer(ctx, registerRetry) != nil {
			return
		}
	}
	s.mu.Lock()
	i.cluster = node.Cluster
	s.mu.Unlock()
	s.log(i, "kubelet", "Successfully registered node "+node.Name)
}

// runScript simulates the part of a script that depends on AWS: it reads the node configuration that the script fetches, with the
// instance's role, and verifies its hash. Nothing else of the script runs. It returns the NodeConfigs that the configuration writes.
func (s *Service) runScript(ctx context.Context, i *instance, script string) (map[string]string, error) {
	files := map[string]string{}
	for _, f := range fetches(script) {
		if s.config.Roles == nil || s.config.Objects == nil {
			return nil, fmt.Errorf("fetch s3://%s/%s: there is no S3 here", f.bucket, f.key)
		}
		if i.roleARN == "" {
			return nil, fmt.Errorf("fetch s3://%s/%s: Unable to locate credentials: the instance has no role", f.bucket, f.key)
		}
		caller, _, err := s.config.Roles.AssumeRoleAs(i.roleARN, i.id, "ec2.amazonaws.com")
		if err != nil {
			return nil, fmt.Errorf("fetch s3://%s/%s: credentials of %s: %w", f.bucket, f.key, i.roleARN, err)
		}
		body, err := s.config.Objects.ReadObject(ctx, caller, f.bucket, f.key, "")
		if err != nil {
			return nil, fmt.Errorf("fetch s3://%s/%s: %w", f.bucket, f.key, err)
		}
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != f.sha256 {
			return nil, fmt.Errorf("fetch s3://%s/%s: computed checksum did NOT match", f.bucket, f.key)
		}
		s.log(i, "cloud-init", fmt.Sprintf("fetched s3://%s/%s, %d bytes: OK", f.bucket, f.key, len(body)))
		maps.Copy(files, placedConfigs(string(body)))
	}
	return files, nil
}

// node returns the registration of the instance's kubelet.
func (s *Service) node(i *instance, config *nodeConfig) (Node, error) {
	if err := config.validate(); err != nil {
		return Node{}, err
	}
	if i.image.KubeletVersion == "" {
		return Node{}, fmt.Errorf("there is no kubelet on %s (%s)", i.image.ID, i.image.Name)
	}
	k, err := config.kubelet()
	if err != nil {
		return Node{}, err
	}
	if k.maxPods == 0 {
		k.maxPods = i.typ.MaxPods()
	}
	cluster := config.Spec.Cluster
	architecture := "amd64"
	if i.typ.Architecture == "arm64" {
		architecture = "arm64"
	}
	node := Node{
		Cluster: cluster.Name, Endpoint: cluster.APIServerEndpoint, CertificateAuthority: cluster.CertificateAuthority, ServiceCIDR: cluster.CIDR,
		Name: i.dnsName, ProviderID: "aws:///" + i.zone + "/" + i.id, RoleARN: i.roleARN,
		InstanceID: i.id, InstanceType: i.typ.Name, ImageID: i.image.ID,
		Region: s.config.Region, Zone: i.zone, Subnet: i.subnet, Architecture: architecture, KubeletVersion: i.image.KubeletVersion,
		Address: i.address, Spot: i.spot,
		Labels: k.labels, Taints: k.taints, KubeletFlags: k.flags, MaxPods: k.maxPods, VCPUs: i.typ.VCPUs, MemoryMiB: i.typ.MemoryMiB,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.volumes.get(i.volumes[0]); ok {
		node.DiskGiB = v.size
	}
	return node, nil
}

// log writes a line to the instance's console.
func (s *Service) log(i *instance, program, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := s.config.Clock.Now().Sub(i.launched).Seconds()
	fmt.Fprintf(&i.console, "[%9.3f] %s: %s\n", age, program, strings.TrimRight(line, "\n"))
}

// Console returns the output of GetConsoleOutput.
func (s *Service) Console(id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.instance(id)
	if err != nil {
		return "", err
	}
	return i.console.String(), nil
}
