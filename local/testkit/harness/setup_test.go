package harness

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	admit "github.com/drover-run/drover/functions/admit/setup"
	change "github.com/drover-run/drover/functions/change/setup"
	clean "github.com/drover-run/drover/functions/clean/setup"
	drain "github.com/drover-run/drover/functions/drain/setup"
	fleet "github.com/drover-run/drover/functions/fleet/setup"
	join "github.com/drover-run/drover/functions/join/setup"
	plan "github.com/drover-run/drover/functions/plan/setup"
	prepare "github.com/drover-run/drover/functions/prepare/setup"
	publish "github.com/drover-run/drover/functions/publish/setup"
	relay "github.com/drover-run/drover/functions/relay/setup"
	report "github.com/drover-run/drover/functions/report/setup"
	rollout "github.com/drover-run/drover/functions/rollout/setup"
	stackevent "github.com/drover-run/drover/functions/stackevent/setup"
	sweep "github.com/drover-run/drover/functions/sweep/setup"
	upgrade "github.com/drover-run/drover/functions/upgrade/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

// The compiler does not notice a field of a handler that setup leaves empty. Every function of the tree has a handler here.
func TestSetupFillsEveryField(t *testing.T) {
	env := lambdaruntime.Env{Output: io.Discard, Variables: map[string]string{}}
	for _, name := range []string{
		lambdaruntime.SpecsBucket, lambdaruntime.StateBucket, lambdaruntime.Account, lambdaruntime.Partition, lambdaruntime.ConvergeARN,
		lambdaruntime.JoinARN, lambdaruntime.UpgradeARN, lambdaruntime.DrainARN, lambdaruntime.TopicARN, lambdaruntime.CloudFormationRole,
		lambdaruntime.LeftoversRole, lambdaruntime.Relay,
	} {
		env.Variables[name] = name
	}
	env.Variables[lambdaruntime.CellLimit] = "5"
	// The template of the control plane sets these variables of relay.
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	env.Variables["CLUSTER_ENDPOINT"], env.Variables["CLUSTER_CA"] = server.URL, base64.StdEncoding.EncodeToString(authority)
	cfg := aws.Config{Region: Region}
	handlers := map[string]any{
		"admit": admit.New(cfg, env), "change": change.New(cfg, env), "clean": clean.New(cfg, env), "drain": drain.New(cfg, env),
		"fleet": fleet.New(cfg, env), "join": join.New(cfg, env), "plan": plan.New(cfg, env), "prepare": prepare.New(cfg, env),
		"publish": publish.New(cfg, env), "relay": relay.New(env), "report": report.New(cfg, env), "rollout": rollout.New(cfg, env),
		"stackevent": stackevent.New(cfg, env), "sweep": sweep.New(cfg, env), "upgrade": upgrade.New(cfg, env),
	}
	_, here, _, _ := runtime.Caller(0) // the S3 gateway of another test changes the working directory
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(here), "../../../functions/*/setup"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	require.Len(t, handlers, len(folders))
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		require.NotNil(t, handlers[name], "add the handler of %s to handlers", name)
	}
	for name, handler := range handlers {
		fields := reflect.ValueOf(handler).Elem()
		for i := range fields.NumField() {
			if field := fields.Type().Field(i); field.IsExported() {
				require.False(t, fields.Field(i).IsZero(), "%s: %s", name, field.Name)
			}
		}
	}
}
