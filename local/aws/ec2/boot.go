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
	// Cluster, Endpoint, CertificateAuthority (base64) and ServiceCIDR come from its user data. Bottlerocket needs no ServiceCIDR.
	Cluster, Endpoint, CertificateAuthority, ServiceCIDR string
	// Name is the private DNS name, ProviderID aws:///<zone>/<instance>.
	Name, ProviderID string
	// RoleARN is the role of its instance profile, by which access entries identify nodes.
	RoleARN string

	InstanceID, InstanceType, ImageID string
	Region, Zone, Subnet              string
	// Architecture is Kubernetes' amd64 or arm64.
	Architecture string
	// KubeletVersion such as v1.36.3-eks-0e3cf2b. OSImage such as Amazon Linux 2023.
	KubeletVersion, OSImage string
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
	s.log(i, "kernel", "Linux version 6.12 "+i.image.osImage()+" ("+i.image.Name+")")
	configure, program := s.bootAL2023, "nodeadm"
	if i.image.Family == Bottlerocket {
		configure, program = s.bootBottlerocket, "bottlerocket"
	}
	read, joins := configure(ctx, i)
	if !joins {
		return
	}
	node, err := s.node(i, read)
	if err != nil {
		s.log(i, program, "fatal: "+err.Error())
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

// registration is what user data says about the node.
type registration struct {
	cluster, endpoint, authority, serviceCIDR string
	kubelet
}

// bootAL2023 reads user data like cloud-init and nodeadm. joins is false if the kubelet does not start.
func (s *Service) bootAL2023(ctx context.Context, i *instance) (r registration, joins bool) {
	config, err := parseUserData(i.userData)
	if err != nil {
		s.log(i, "nodeadm", "fatal: "+err.Error())
		return r, false
	}
	if s.config.Clock.Work(ctx, bootWork) != nil {
		return r, false
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
			return r, false
		}
	}
	if config.node == nil {
		s.log(i, "nodeadm", "no NodeConfig in user data: nothing to join")
		return r, false
	}
	if err := config.node.validate(); err != nil {
		s.log(i, "nodeadm", "fatal: "+err.Error())
		return r, false
	}
	if err := config.node.setUpDisks(i.typ.Disks); err != nil {
		s.log(i, "nodeadm", "fatal: "+err.Error())
		return r, false
	}
	if r.kubelet, err = config.node.kubelet(); err != nil {
		s.log(i, "nodeadm", "fatal: "+err.Error())
		return r, false
	}
	cluster := config.node.Spec.Cluster
	r.cluster, r.endpoint, r.authority, r.serviceCIDR = cluster.Name, cluster.APIServerEndpoint, cluster.CertificateAuthority, cluster.CIDR
	return r, true
}

// bootBottlerocket reads user data like Bottlerocket.
func (s *Service) bootBottlerocket(ctx context.Context, i *instance) (r registration, joins bool) {
	if s.config.Clock.Work(ctx, bootWork) != nil {
		return r, false
	}
	r, err := i.image.parseSettings(i.userData)
	if err != nil {
		s.log(i, "bottlerocket", "fatal: "+err.Error())
		return r, false
	}
	return r, true
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
func (s *Service) node(i *instance, r registration) (Node, error) {
	if i.image.KubeletVersion == "" {
		return Node{}, fmt.Errorf("there is no kubelet on %s (%s)", i.image.ID, i.image.Name)
	}
	k := r.kubelet
	if k.maxPods == 0 {
		k.maxPods = i.typ.MaxPods()
	}
	architecture := "amd64"
	if i.typ.Architecture == "arm64" {
		architecture = "arm64"
	}
	node := Node{
		Cluster: r.cluster, Endpoint: r.endpoint, CertificateAuthority: r.authority, ServiceCIDR: r.serviceCIDR,
		Name: i.dnsName, ProviderID: "aws:///" + i.zone + "/" + i.id, RoleARN: i.roleARN,
		InstanceID: i.id, InstanceType: i.typ.Name, ImageID: i.image.ID,
		Region: s.config.Region, Zone: i.zone, Subnet: i.subnet, Architecture: architecture, KubeletVersion: i.image.KubeletVersion,
		OSImage: i.image.osImage(),
		Address: i.address, Spot: i.spot,
		Labels: k.labels, Taints: k.taints, KubeletFlags: k.flags, MaxPods: k.maxPods, VCPUs: i.typ.VCPUs, MemoryMiB: i.typ.MemoryMiB,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	disk := i.image.devices()[len(i.image.devices())-1]
	for _, id := range i.volumes {
		if v, ok := s.volumes.get(id); ok && v.device == disk {
			node.DiskGiB = v.size
		}
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
