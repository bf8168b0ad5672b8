package render

// User data: the NodeConfig for nodeadm and, if a pool has files or commands, a script that fetches them from the state bucket. User data
// contains outputs of other stacks, so it is rendered as the parts of a Fn::Join.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// userDataParams are the parameters of user-data.mime.tmpl and of the files that it includes.
type userDataParams struct {
	ClusterName, ServiceCIDR string
	MaxPods                  int
	Flags                    []string
	// Kubelet is further configuration of the kubelet, sorted by name.
	Kubelet []kubeletSetting
	// KubeletApart reports that the kubelet's part is in the configuration, because user data has no room for it.
	KubeletApart bool
	// Environment are the variables of every service of the system, and of the scripts here.
	Environment []variable
	// LocalStorage is how the disks of the instance are used, or "".
	LocalStorage string
	// CABundle has certificates in PEM, or is "".
	CABundle string
	// Configuration is the S3 address of the script with files and commands, or "".
	Configuration, Checksum, Region string
}

// configurationParams are the parameters of configuration.sh.tmpl.
type configurationParams struct {
	Files    []api.File
	Commands []command
}

// command is numbered from 1.
type command struct{ Number, Command string }

// kubeletSetting is a field of KubeletConfiguration.
type kubeletSetting struct {
	Name  string
	Value any
}

// variable of the environment.
type variable struct{ Name, Value string }

// part of a Fn::Join: text, or the value of a stack parameter.
type part struct{ Text, Ref string }

// kubeletConfigPath is where nodeadm reads further NodeConfigs before it starts the kubelet.
const kubeletConfigPath = "/etc/eks/nodeadm.d/drover.yaml"

// roomForRef is the maximum length of a stack parameter's value. A certificate authority has about 1,500 bytes of base64.
const roomForRef = 2048

// userData renders the user data of a pool, and adds its configuration, if any, to the output.
func (r *renderer) userData(pool *api.Pool) ([]part, error) {
	if pool.Image.Family == api.Bottlerocket {
		return r.bottlerocketData(pool)
	}
	params := &userDataParams{
		ClusterName: eksName(r.Resolved),
		ServiceCIDR: r.Resolved.Spec.ControlPlane.ServiceCIDR,
		MaxPods:     pool.MaxPods,
		Region:      r.Cell.Region,
		Environment: proxyEnvironment(r.Cell, r.Resolved, pool.Proxy),

		LocalStorage: string(pool.LocalStorage),
	}
	var err error
	if params.CABundle, err = pool.Certificates(); err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(pool.Kubelet)) {
		if name == "maxPods" {
			return nil, errors.New("kubelet.maxPods: it has a field of its own")
		}
		params.Kubelet = append(params.Kubelet, kubeletSetting{name, pool.Kubelet[name]})
	}
	if params.Flags, err = kubeletFlags(pool); err != nil {
		return nil, err
	}
	parts, size, err := r.userDataParts(params, pool.Files, pool.Commands)
	if err != nil || size <= MaxUserData {
		return parts, err
	}
	// Only the kubelet's part can be long, and nodeadm also reads it from a file.
	kubelet, err := r.execute("node-config-kubelet.yaml.tmpl", params)
	if err != nil {
		return nil, err
	}
	params.KubeletApart = true
	files := append([]api.File{{Path: kubeletConfigPath, Mode: "0600", Content: string(kubelet)}}, pool.Files...)
	parts, size, err = r.userDataParts(params, files, pool.Commands)
	if err == nil && size > MaxUserData {
		err = fmt.Errorf("its user data has %d bytes, and EC2 takes at most %d", size, MaxUserData)
	}
	return parts, err
}

// userDataParts renders user data and the configuration that it fetches. size is the maximum size of the user data in bytes.
func (r *renderer) userDataParts(params *userDataParams, files []api.File, commands []string) (parts []part, size int, err error) {
	if len(files)+len(commands) > 0 {
		script := configurationParams{Files: files}
		for i, file := range files {
			if _, err := strconv.ParseUint(file.Mode, 8, 12); err != nil {
				return nil, 0, fmt.Errorf("files[%d].mode: %q is not octal, such as 0644", i, file.Mode)
			}
		}
		for i, text := range commands {
			script.Commands = append(script.Commands, command{strconv.Itoa(i + 1), text})
		}
		body, err := r.execute("configuration.sh.tmpl", &script)
		if err != nil {
			return nil, 0, err
		}
		params.Checksum = names.SHA256(body)
		params.Configuration = "s3://" + r.Cell.StateBucket + "/" + names.UserData(body)
		// Only the configuration of user data that fits is stored.
		defer func() {
			if err == nil && size <= MaxUserData {
				r.out.UserData[names.UserData(body)] = body
			}
		}()
	}
	text, err := r.execute("user-data.mime.tmpl", params)
	if err != nil {
		return nil, 0, err
	}
	parts, size = splitParts(text)
	return parts, size, nil
}

// splitParts splits rendered user data into the parts of a Fn::Join. size is its maximum size in bytes.
func splitParts(text []byte) (parts []part, size int) {
	for i, piece := range strings.Split(string(text), refMark) {
		if i%2 == 1 {
			parts = append(parts, part{Ref: piece})
			size += roomForRef
			continue
		}
		for line := range strings.Lines(piece) {
			parts = append(parts, part{Text: line})
			size += len(line)
		}
	}
	return parts, size
}

// kubeletFlags returns the command line flags of a pool's kubelets: labels, taints and the user's flags.
func kubeletFlags(pool *api.Pool) ([]string, error) {
	var labels, taints []string
	for _, label := range sortedTags(nodeLabels(pool)) {
		if strings.ContainsAny(label.Key, ",=") || strings.Contains(label.Value, ",") {
			return nil, fmt.Errorf("labels[%q]: a flag of the kubelet cannot hold %q", label.Key, label.Value)
		}
		labels = append(labels, label.Key+"="+label.Value)
	}
	for i, taint := range pool.Taints {
		if strings.ContainsAny(taint.Key, ",=:") || strings.ContainsAny(taint.Value, ",:") || strings.ContainsAny(taint.Effect, ",") {
			return nil, fmt.Errorf("taints[%d]: a flag of the kubelet cannot hold %q", i, taint)
		}
		taints = append(taints, taint.Key+"="+taint.Value+":"+taint.Effect)
	}
	flags := []string{"--node-labels=" + strings.Join(labels, ",")}
	if len(taints) > 0 {
		flags = append(flags, "--register-with-taints="+strings.Join(taints, ","))
	}
	flags = append(flags, pool.KubeletFlags...)
	for _, flag := range flags {
		// nodeadm writes the flags into one line of an environment file. systemd splits it at spaces and removes quotes.
		if flag == "" || strings.ContainsFunc(flag, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("\"'\\", r)
		}) {
			return nil, fmt.Errorf("%.80q cannot be a flag of the kubelet: it is empty, or holds a space, a quote or a backslash", flag)
		}
	}
	return flags, nil
}
