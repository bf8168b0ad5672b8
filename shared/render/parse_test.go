package render

// Decoding the output: templates, user data, the NodeConfig in it, and scripts, which the tests run.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// resources returns the resources of a stack by logical id.
func resources(t testing.TB, stack Stack) map[string]any {
	t.Helper()
	var body struct {
		Resources map[string]any `yaml:"Resources"`
	}
	require.NoError(t, yaml.Unmarshal(stack.Template, &body), stack.Name)
	return body.Resources
}

// at follows keys and indexes into decoded YAML.
func at(t testing.TB, v any, path ...string) any {
	t.Helper()
	for _, key := range path {
		if list, ok := v.([]any); ok {
			i, err := strconv.Atoi(key)
			require.NoError(t, err)
			require.Greater(t, len(list), i)
			v = list[i]
			continue
		}
		require.IsType(t, map[string]any{}, v, key)
		v = v.(map[string]any)[key]
	}
	return v
}

// Values of the parameters of a pool's stack.
var parameterValues = map[string]string{
	"ClusterEndpoint":             "https://0123456789ABCDEF.gr7.eu-central-1.eks.amazonaws.com",
	"ClusterCertificateAuthority": "LS0tLS1CRUdJTg==",
}

// userDataOf returns the user data of a pool's instances.
func userDataOf(t testing.TB, stack Stack) string {
	t.Helper()
	join := at(t, resources(t, stack), "LaunchTemplate", "Properties", "LaunchTemplateData", "UserData", "Fn::Base64", "Fn::Join").([]any)
	require.Equal(t, "", join[0])
	var text strings.Builder
	for _, part := range join[1].([]any) {
		if ref, ok := part.(map[string]any); ok {
			require.Len(t, ref, 1)
			require.Contains(t, parameterValues, ref["Ref"])
			text.WriteString(parameterValues[ref["Ref"].(string)])
			continue
		}
		text.WriteString(part.(string))
	}
	return text.String()
}

// nodeData is user data as cloud-init and nodeadm split it.
type nodeData struct {
	// Config is the NodeConfig.
	Config map[string]any
	// Certificates are what the script trust installs, or "".
	Certificates, trust string
	// Environment are the variables that Script exports.
	Environment map[string]string
	// Script fetches and runs the configuration, or is "". It is without its exports.
	Script string
}

// readTOML reads TOML with a parser that drover does not use, and returns the values that JSON would have.
func readTOML(t testing.TB, text string) (values map[string]any) {
	t.Helper()
	require.NotRegexp(t, `[^ -~\n]`, text, "ASCII")
	var document map[string]any
	_, err := toml.Decode(text, &document)
	require.NoError(t, err, text)
	body, err := json.Marshal(document)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &values))
	return values
}

func readUserData(t testing.TB, text string) nodeData {
	t.Helper()
	require.LessOrEqual(t, len(text), MaxUserData)
	if strings.HasPrefix(text, "[settings") {
		data := nodeData{Config: readTOML(t, text)}
		data.Certificates = takeCertificates(t, data.Config)
		return data
	}
	message, err := mail.ReadMessage(strings.NewReader(text))
	require.NoError(t, err)
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", media)
	var data nodeData
	for parts := multipart.NewReader(message.Body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if err == io.EOF {
			return data
		}
		require.NoError(t, err)
		body, err := io.ReadAll(part)
		require.NoError(t, err)
		switch media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); media {
		case "application/node.eks.aws":
			require.Nil(t, data.Config)
			require.NoError(t, yaml.Unmarshal(body, &data.Config), string(body))
		case "text/x-shellscript":
			if strings.Contains(string(body), "update-ca-trust") {
				require.Empty(t, data.trust+data.Script, "before the other script")
				data.trust = string(body)
				data.Certificates = installed(t, data.trust)
				break
			}
			require.Empty(t, data.Script)
			data.Script, data.Environment = withoutExports(t, string(body))
		default:
			require.Fail(t, "unknown part", media)
		}
	}
}

// anchors is where the system takes further certificates from.
const anchors = "/etc/pki/ca-trust/source/anchors/"

// installed runs a script that installs certificates in another place, and returns them. Most specs of a test have the same script, which
// runs once.
func installed(t testing.TB, script string) string {
	t.Helper()
	if known, found := installedBy.Load(script); found {
		return known.(string)
	}
	bin := t.TempDir()
	store, err := os.MkdirTemp("", "anchors") // names of tests have characters that bash reads
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(store) })
	executable(t, bin, "update-ca-trust", "exit 0")
	executable(t, bin, "systemctl", "exit 1")
	require.Equal(t, 1, strings.Count(script, anchors))
	printed, err := runScript(t, bin, []byte(strings.Replace(script, anchors, store+"/", 1)))
	require.NoError(t, err, printed)
	body, err := os.ReadFile(filepath.Join(store, "drover.pem"))
	require.NoError(t, err)
	installedBy.Store(script, string(body))
	return string(body)
}

// withoutExports returns a script without the variables that it exports, and the variables as bash reads them.
func withoutExports(t testing.TB, script string) (rest string, variables map[string]string) {
	t.Helper()
	start, end := strings.Index(script, "\nexport "), strings.Index(script, "\n\nfor try")
	if start < 0 {
		return script, nil
	}
	exports, rest := script[start:end], script[:start]+script[end:]
	if known, found := exportedBy.Load(exports); found {
		return rest, known.(map[string]string)
	}
	printed, err := runScript(t, t.TempDir(), []byte(exports+"\nenv --null\n"))
	require.NoError(t, err)
	variables = map[string]string{}
	for text := range strings.SplitSeq(strings.TrimSuffix(printed, "\x00"), "\x00") {
		name, value, _ := strings.Cut(text, "=")
		if !slices.Contains([]string{"PATH", "PWD", "SHLVL", "_"}, name) {
			variables[name] = value
		}
	}
	exportedBy.Store(exports, variables)
	return rest, variables
}

// What scripts did, by their text.
var installedBy, exportedBy sync.Map

// takeCertificates removes the certificates from the settings of Bottlerocket, where they are encoded, and returns them.
func takeCertificates(t testing.TB, config map[string]any) string {
	t.Helper()
	pki, found := at(t, config, "settings").(map[string]any)["pki"].(map[string]any)
	if !found {
		return ""
	}
	require.Equal(t, true, at(t, pki, "drover", "trusted"))
	body, err := base64.StdEncoding.DecodeString(at(t, pki, "drover", "data").(string))
	require.NoError(t, err)
	delete(pki, "drover")
	return string(body)
}

// kubeletOf reads the flags of a NodeConfig: labels, taints, the others.
func kubeletOf(t testing.TB, config map[string]any) (labels map[string]string, taints, flags []string) {
	t.Helper()
	for _, flag := range at(t, config, "spec", "kubelet", "flags").([]any) {
		flag := flag.(string)
		if list, ok := strings.CutPrefix(flag, "--node-labels="); ok {
			require.Nil(t, labels)
			labels = map[string]string{}
			for _, label := range strings.Split(list, ",") {
				key, value, found := strings.Cut(label, "=")
				require.True(t, found)
				labels[key] = value
			}
		} else if list, ok := strings.CutPrefix(flag, "--register-with-taints="); ok {
			require.Nil(t, taints)
			taints = strings.Split(list, ",")
		} else {
			flags = append(flags, flag)
		}
	}
	return labels, taints, flags
}

// checksums of configurations change with every string in them.
var checksums = regexp.MustCompile(`[0-9a-f]{64}`)

// decode decodes the output through every language in it. It hides values that are derived from others.
func decode(t testing.TB, out, other *Output) map[string]any {
	t.Helper()
	same := map[string]bool{}
	for _, stack := range other.Stacks {
		same[string(stack.Template)+fmt.Sprint(stack.Tags, stack.Parameters)] = true
	}
	tree := map[string]any{}
	for _, stack := range out.Stacks {
		if same[string(stack.Template)+fmt.Sprint(stack.Tags, stack.Parameters)] {
			continue
		}
		tree[stack.Name] = decodeStack(t, stack)
	}
	for key, body := range out.UserData {
		if _, ok := other.UserData[key]; !ok {
			tree["configuration"] = runConfiguration(t, body)
		}
	}
	body, err := json.Marshal(tree)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &tree))
	decodeTexts(t, tree)
	return tree
}

// decodedStacks are stacks as JSON, by their content. Tests compare one output with many, and decoding is most of their time.
var decodedStacks sync.Map

func decodeStack(t testing.TB, stack Stack) json.RawMessage {
	t.Helper()
	key := fmt.Sprint(stack.Name, stack.StackName, stack.Tags, stack.Parameters, stack.Protected, string(stack.Template))
	if decoded, found := decodedStacks.Load(key); found {
		return decoded.(json.RawMessage)
	}
	var template map[string]any
	require.NoError(t, yaml.Unmarshal(stack.Template, &template), stack.Name)
	if strings.HasPrefix(stack.Name, "pool-") {
		data := readUserData(t, userDataOf(t, stack))
		if _, bottlerocket := data.Config["settings"]; !bottlerocket {
			labels, taints, flags := kubeletOf(t, data.Config)
			at(t, data.Config, "spec", "kubelet").(map[string]any)["flags"] = []any{labels, taints, flags}
		}
		at(t, template, "Resources", "LaunchTemplate", "Properties", "LaunchTemplateData").(map[string]any)["UserData"] = data
	}
	body, err := json.Marshal(map[string]any{
		"template": template, "name": stack.StackName, "tags": stack.Tags, "parameters": stack.Parameters, "protected": stack.Protected,
	})
	require.NoError(t, err)
	if strings.Contains(key, placeholder) { // the side that is compared again
		decodedStacks.Store(key, json.RawMessage(body))
	}
	return body
}

// decodeTexts decodes strings that hold JSON and hides checksums.
func decodeTexts(t testing.TB, v any) any {
	switch v := v.(type) {
	case string:
		return checksums.ReplaceAllString(v, "<checksum>")
	case []any:
		for i := range v {
			v[i] = decodeTexts(t, v[i])
		}
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok && (key == "ConfigurationValues" || key == "NotificationMetadata") {
				require.NoError(t, json.Unmarshal([]byte(text), &value))
			}
			v[key] = decodeTexts(t, value)
		}
	}
	return v
}

// substitute replaces a string in every string and key, and in the logical ids derived from it.
func substitute(v any, old, new string) any {
	replace := strings.NewReplacer(old, new, digest(old), digest(new)).Replace
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return replace(v)
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = walk(v[i])
			}
			return out
		case map[string]any:
			out := map[string]any{}
			for key, value := range v {
				out[replace(key)] = walk(value)
			}
			return out
		}
		return v
	}
	return walk(v)
}

// filesRoot is where the tests' specs put files.
var filesRoot = filepath.Join(os.TempDir(), fmt.Sprintf("drover-render-%d", os.Getpid()))

// configuration is the result of a configuration script: the files below filesRoot with mode and content, and the commands.
type configuration struct {
	Files    map[string]string
	Commands []string
}

// runConfiguration runs a configuration script with a bash that records commands instead of running them.
func runConfiguration(t testing.TB, script []byte) configuration {
	t.Helper()
	require.NoError(t, os.RemoveAll(filesRoot))
	t.Cleanup(func() { os.RemoveAll(filesRoot) })
	dir := t.TempDir()
	bin, kept := filepath.Join(dir, "bin"), filepath.Join(dir, "commands")
	require.NoError(t, os.MkdirAll(kept, 0o700))
	executable(t, bin, "bash", `cat "${@: -1}" > "`+kept+`/$(ls "`+kept+`" | wc -l)"`)
	output, err := runScript(t, bin, script)
	require.NoError(t, err, output)
	require.Empty(t, output)
	out := configuration{Files: map[string]string{}}
	require.NoError(t, filepath.WalkDir(filesRoot, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		require.NoError(t, err)
		body, err := os.ReadFile(path)
		out.Files[path] = info.Mode().String() + " " + string(body)
		return err
	}))
	for i := 0; ; i++ {
		body, err := os.ReadFile(filepath.Join(kept, strconv.Itoa(i)))
		if os.IsNotExist(err) {
			return out
		}
		require.NoError(t, err)
		out.Commands = append(out.Commands, string(bytes.TrimSuffix(body, []byte("\n"))))
	}
}

// executable writes a bash script into a folder.
func executable(t testing.TB, dir, name, body string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+body+"\n"), 0o700))
}

// runScript runs a script. Executables of a folder precede those of the machine.
func runScript(t testing.TB, bin string, script []byte) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(file, script, 0o600))
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	cmd := exec.Command(bash, file)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	output, err := cmd.CombinedOutput()
	return string(output), err
}
