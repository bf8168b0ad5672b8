package cli

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func newStarter() *starter {
	return &starter{
		Name: "demo", Release: "1.36-1", CIDR: "10.0.0.0/16", Zones: []string{"us-east-1a", "us-east-1b"},
		Access: "arn:aws:iam::111122223333:role/platform", Architecture: api.ARM64, InstanceTypes: []string{"m7g.large"}, MinSize: 2, MaxSize: 4,
	}
}

func TestWriteStarter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.yaml")
	var out bytes.Buffer
	require.NoError(t, writeStarter(&out, file, newStarter()))
	require.Contains(t, out.String(), "wrote "+file+". Next:\n  drover diff "+file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(data, []byte("\n")), 35)
	cluster, err := ParseCluster(file, data)
	require.NoError(t, err)
	require.Equal(t, "1.36-1", cluster.Spec.Release.Name)
	require.Equal(t, []string{"us-east-1a", "us-east-1b"}, cluster.Spec.Network.Zones)
	require.Equal(t, "arn:aws:iam::111122223333:role/platform", cluster.Spec.ControlPlane.Access[0].PrincipalARN)
	require.Equal(t, "AmazonEKSClusterAdminPolicy", cluster.Spec.ControlPlane.Access[0].Policies[0].Name)
	require.Equal(t, api.ARM64, cluster.Spec.Pools[0].Architecture)
	require.Equal(t, []int{2, 4}, []int{cluster.Spec.Pools[0].MinSize, cluster.Spec.Pools[0].MaxSize})

	require.EqualError(t, writeStarter(&out, file, newStarter()), file+" exists, and is unchanged: choose another file with --out")
	same, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, data, same)
}

func TestStarterOfAnExistingNetwork(t *testing.T) {
	s := newStarter()
	s.VPC, s.Subnets, s.Access = "vpc-0a1b2c3d4e5f60718", []string{"subnet-0a1b2c3d4e5f60711", "subnet-0a1b2c3d4e5f60722"}, ""
	var out bytes.Buffer
	require.NoError(t, writeStarter(&out, standardInput, s))
	cluster, err := ParseCluster("demo.yaml", out.Bytes())
	require.NoError(t, err)
	require.Equal(t, s.VPC, cluster.Spec.Network.Existing.VPCID)
	require.Equal(t, s.Subnets, cluster.Spec.Network.Existing.Subnets)
	require.Empty(t, cluster.Spec.ControlPlane.Access)
}

// An answer is one value of the spec, whatever its characters. A spec that is not valid is not written.
func TestStarterIsValid(t *testing.T) {
	tests := map[string]struct {
		change func(*starter)
		err    string
	}{
		"name":           {func(s *starter) { s.Name = "Demo" }, `demo.yaml:5`},
		"name as YAML":   {func(s *starter) { s.Name = "demo\nspec: {}" }, `metadata.name`},
		"release":        {func(s *starter) { s.Release = "" }, "spec.release.name"},
		"one zone":       {func(s *starter) { s.Zones = s.Zones[:1] }, "spec.network.zones"},
		"CIDR":           {func(s *starter) { s.CIDR = "10.0.0.0" }, "spec.network.cidr"},
		"sizes":          {func(s *starter) { s.MinSize = 5 }, "minSize"},
		"architecture":   {func(s *starter) { s.InstanceTypes = append(s.InstanceTypes, "m7i.large") }, "instanceTypes[1]"},
		"access":         {func(s *starter) { s.Access = "me" }, "principalARN"},
		"VPC":            {func(s *starter) { s.VPC, s.Subnets = "vpc", []string{"subnet-0a1b2c3d4e5f60711"} }, "vpcID"},
		"type with YAML": {func(s *starter) { s.InstanceTypes = []string{"m7g.large]\nrollAt: x"} }, "instanceTypes[0]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "demo.yaml")
			s := newStarter()
			test.change(s)
			err := writeStarter(&bytes.Buffer{}, file, s)
			require.ErrorContains(t, err, test.err)
			require.ErrorContains(t, err, "nothing was written: repeat the command with other answers")
			require.NoFileExists(t, file)
		})
	}
}

func TestQuestions(t *testing.T) {
	var out bytes.Buffer
	q := &questions{in: bufio.NewReader(strings.NewReader("\n a, b \n7\nmany\nlast")), out: &out}
	answer, err := q.ask("Release", "1.36-1")
	require.NoError(t, err)
	require.Equal(t, "1.36-1", answer)
	list, err := q.askList("Zones", []string{"c"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, list)
	number, err := q.askNumber("Nodes", 2)
	require.NoError(t, err)
	require.Equal(t, 7, number)
	_, err = q.askNumber("Nodes", 2)
	require.EqualError(t, err, `Nodes: "many" is no number`)
	answer, err = q.ask("End", "")
	require.NoError(t, err)
	require.Equal(t, "last", answer)
	require.Equal(t, "Release [1.36-1]: Zones [c]: Nodes [2]: Nodes [2]: End []: ", out.String())

	q = &questions{out: &out}
	number, err = q.askNumber("Nodes", 2)
	require.NoError(t, err)
	require.Equal(t, 2, number)
}
