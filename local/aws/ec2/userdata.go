package ec2

// User data of AL2023 nodes, read like cloud-init and nodeadm. Of the MIME parts, the NodeConfigs configure the kubelet, and shell scripts
// run before it starts. Scripts never run here. If a script fetches its body from S3 by content address, the body is verified: see boot.go.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// bootConfig is the configuration in user data.
type bootConfig struct {
	// node is nil without a NodeConfig: the machine boots and never joins.
	node    *nodeConfig
	scripts []string
}

// nodeConfig is node.eks.aws/v1alpha1 NodeConfig.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
type nodeConfig struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Metadata   map[string]any `yaml:"metadata"`
	Spec       struct {
		Cluster struct {
			Name                 string `yaml:"name"`
			APIServerEndpoint    string `yaml:"apiServerEndpoint"`
			CertificateAuthority string `yaml:"certificateAuthority"`
			CIDR                 string `yaml:"cidr"`
			EnableOutpost        *bool  `yaml:"enableOutpost"`
			ID                   string `yaml:"id"`
		} `yaml:"cluster"`
		Containerd map[string]any `yaml:"containerd"`
		Instance   map[string]any `yaml:"instance"`
		Kubelet    struct {
			Config map[string]any `yaml:"config"`
			Flags  []string       `yaml:"flags"`
		} `yaml:"kubelet"`
		FeatureGates map[string]bool `yaml:"featureGates"`
	} `yaml:"spec"`
}

// parseUserData reads decoded user data. Errors are those that cloud-init or nodeadm would log.
func parseUserData(data []byte) (bootConfig, error) {
	var c bootConfig
	if len(bytes.TrimSpace(data)) == 0 {
		return c, nil
	}
	message, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil || message.Header.Get("Content-Type") == "" {
		// Not MIME: a script if the first line is a shebang, or else a NodeConfig.
		if bytes.HasPrefix(data, []byte("#!")) {
			return c, c.add("text/x-shellscript", data)
		}
		return c, c.add("application/node.eks.aws", data)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(mediaType, "multipart/") || params["boundary"] == "" {
		return c, fmt.Errorf("user data is no MIME multipart archive: %q", message.Header.Get("Content-Type"))
	}
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("read MIME part: %w", err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return c, fmt.Errorf("read MIME part: %w", err)
		}
		typ, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			return c, fmt.Errorf("MIME part has Content-Type %q: %w", part.Header.Get("Content-Type"), err)
		}
		if err := c.add(typ, body); err != nil {
			return c, err
		}
	}
}

func (c *bootConfig) add(typ string, body []byte) error {
	switch typ {
	case "application/node.eks.aws":
		return c.addNodeConfig(body)
	case "text/x-shellscript", "text/x-shellscript-per-boot", "text/cloud-boothook":
		c.scripts = append(c.scripts, string(body))
	case "text/cloud-config":
	default:
		return fmt.Errorf("unhandled non-multipart (%s) userdata", typ)
	}
	return nil
}

// addNodeConfig merges a NodeConfig over the earlier ones, like nodeadm.
func (c *bootConfig) addNodeConfig(body []byte) error {
	merged := nodeConfig{}
	if c.node != nil {
		merged = *c.node
	}
	earlier := merged.Spec.Kubelet.Flags
	merged.Spec.Kubelet.Flags = nil
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	if err := decoder.Decode(&merged); err != nil {
		return fmt.Errorf("decode NodeConfig: %w", err)
	}
	if merged.Kind != "NodeConfig" || merged.APIVersion != "node.eks.aws/v1alpha1" {
		return fmt.Errorf("no kind %q is registered for version %q", merged.Kind, merged.APIVersion)
	}
	merged.Spec.Kubelet.Flags = append(earlier, merged.Spec.Kubelet.Flags...)
	c.node = &merged
	return nil
}

// validate is the validation of nodeadm.
func (n *nodeConfig) validate() error {
	cluster := n.Spec.Cluster
	switch {
	case cluster.Name == "":
		return errors.New("Name is missing in cluster configuration")
	case cluster.APIServerEndpoint == "":
		return errors.New("Apiserver endpoint is missing in cluster configuration")
	case cluster.CertificateAuthority == "":
		return errors.New("Certificate authority is missing in cluster configuration")
	case cluster.CIDR == "":
		return errors.New("CIDR is missing in cluster configuration")
	}
	return nil
}

// setUpDisks is the setup of the disks of an instance, which fails for RAID10 with too few of them. It skips instances without disks.
// https://github.com/awslabs/amazon-eks-ami/blob/main/templates/al2023/runtime/bin/setup-local-disks
func (n *nodeConfig) setUpDisks(disks int) error {
	storage, _ := n.Spec.Instance["localStorage"].(map[string]any)
	strategy, _ := storage["strategy"].(string)
	switch strategy {
	case "", "RAID0", "Mount":
	case "RAID10":
		if disks > 0 && disks < 4 {
			return fmt.Errorf("raid10 requires at least 4 disks, but only %d found, can not continue", disks)
		}
	default:
		return errors.New("Valid disk setup options are: raid0, raid10, mount or none")
	}
	return nil
}

// kubelet has the settings of the node from the configuration and the flags.
type kubelet struct {
	labels  map[string]string
	taints  []Taint
	maxPods int // 0 if not set
	flags   []string
}

// kubelet reads the settings. Flags override the configuration, as in the kubelet.
func (n *nodeConfig) kubelet() (kubelet, error) {
	k := kubelet{labels: map[string]string{}}
	switch v := n.Spec.Kubelet.Config["maxPods"].(type) {
	case nil:
	case int:
		k.maxPods = v
	default:
		return k, fmt.Errorf("kubelet config: maxPods is %v, not a number", v)
	}
	if list, ok := n.Spec.Kubelet.Config["registerWithTaints"].([]any); ok {
		for _, item := range list {
			m, _ := item.(map[string]any)
			text := func(key string) string { s, _ := m[key].(string); return s }
			k.taints = append(k.taints, Taint{text("key"), text("value"), text("effect")})
		}
	}
	for _, flag := range n.Spec.Kubelet.Flags {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		switch name {
		case "node-labels":
			for pair := range strings.SplitSeq(value, ",") {
				key, v, ok := strings.Cut(pair, "=")
				if pair == "" {
					continue
				}
				if !ok {
					return k, fmt.Errorf("invalid argument %q for \"--node-labels\" flag: malformed pair, expect string=string", value)
				}
				k.labels[key] = v
			}
		case "register-with-taints":
			taints, err := parseTaints(value)
			if err != nil {
				return k, err
			}
			k.taints = append(k.taints, taints...)
		case "max-pods":
			n, err := strconv.Atoi(value)
			if err != nil {
				return k, fmt.Errorf("invalid argument %q for \"--max-pods\" flag: %w", value, err)
			}
			k.maxPods = n
		default:
			k.flags = append(k.flags, flag)
		}
	}
	return k, nil
}

// parseTaints reads key=value:Effect,… The value may be absent.
func parseTaints(text string) ([]Taint, error) {
	var taints []Taint
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		pair, effect, ok := strings.Cut(item, ":")
		if !ok || effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute" {
			return nil, fmt.Errorf("invalid taint spec: %v", item)
		}
		key, value, _ := strings.Cut(pair, "=")
		taints = append(taints, Taint{key, value, effect})
	}
	return taints, nil
}

// nodeConfigDir is the folder of further NodeConfigs, which nodeadm reads in the order of their names.
const nodeConfigDir = "/etc/eks/nodeadm.d/"

// placedConfigs are the NodeConfigs that a fetched configuration writes before the kubelet starts: its lines
//
//	place '/etc/eks/nodeadm.d/<name>.yaml' '<mode>' '<content>'
//
// of single-quoted words, as drover renders them.
func placedConfigs(script string) map[string]string {
	files := map[string]string{}
	for rest := script; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		call, isCall := strings.CutPrefix(rest, "place ")
		if !isCall {
			if strings.HasPrefix(line, "run ") {
				// A command's text may contain lines that look like calls, so its words are skipped.
				_, after = quotedWords(rest[len("run "):], 2)
			}
			rest = after
			continue
		}
		var words []string
		words, rest = quotedWords(call, 3)
		if len(words) == 3 && strings.HasPrefix(words[0], nodeConfigDir) {
			files[words[0]] = words[2]
		}
	}
	return files
}

// quotedWords reads n words in single quotes, as shared/render writes them, and returns the rest of the text.
func quotedWords(text string, n int) (words []string, rest string) {
	rest = text
	for len(words) < n {
		rest = strings.TrimLeft(rest, " ")
		if !strings.HasPrefix(rest, "'") {
			_, rest, _ = strings.Cut(rest, "\n")
			return words, rest
		}
		var word strings.Builder
		for strings.HasPrefix(rest, "'") {
			inside, after, closed := strings.Cut(rest[1:], "'")
			if !closed {
				return words, ""
			}
			word.WriteString(inside)
			rest = after
			if escaped, ok := strings.CutPrefix(rest, `\'`); ok {
				word.WriteByte('\'')
				rest = escaped
			}
		}
		words = append(words, word.String())
	}
	return words, rest
}

// contentAddress matches a complete S3 URL of an object that is named by its hash.
var contentAddress = regexp.MustCompile(`s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(userdata/([0-9a-f]{64}))\b`)

// fetch is a script's read of node configuration from S3.
type fetch struct{ bucket, key, sha256 string }

// fetches finds the reads of content-addressed node configuration in a script.
func fetches(script string) []fetch {
	var found []fetch
	seen := map[string]bool{}
	for _, m := range contentAddress.FindAllStringSubmatch(script, -1) {
		if !seen[m[0]] {
			seen[m[0]] = true
			found = append(found, fetch{m[1], m[2], m[3]})
		}
	}
	return found
}
