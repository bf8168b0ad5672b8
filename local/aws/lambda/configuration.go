package lambda

// Function settings, as the API and templates give them.

import (
	"encoding/json"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/engine/wire"
)

// settings of a function. The API and templates spell them alike.
type settings struct {
	FunctionName      string
	Description       string
	Role              string
	Runtime           string
	Handler           string
	Architectures     []string
	PackageType       string
	MemorySize        int
	Timeout           int
	Environment       *variables
	DeadLetterConfig  *deadLetter
	TracingConfig     *tracing
	LoggingConfig     *logging
	EphemeralStorage  *storage
	KMSKeyArn         string
	Tags              map[string]string
	VPCConfig         *vpcConfig `json:"VpcConfig,omitempty"`
	ReservedInstances *int       `json:"-"` // reserved concurrent executions; nil: none
}

type variables struct{ Variables map[string]string }

type deadLetter struct {
	TargetArn string `json:",omitempty"`
}

type tracing struct{ Mode string }

type storage struct{ Size int }

type logging struct {
	LogGroup            string
	LogFormat           string
	ApplicationLogLevel string `json:",omitempty"`
	SystemLogLevel      string `json:",omitempty"`
}

// code is the location of a deployment package.
type code struct {
	S3Bucket, S3Key, S3ObjectVersion, ImageUri string // AWS's spelling
	ZipFile                                    []byte
}

// architectures by GOARCH of the host.
var architectures = map[string]string{"amd64": "x86_64", "arm64": "arm64"}

var variableForm = regexp.MustCompile(`^[a-zA-Z]([a-zA-Z0-9_])+$`)

// maxVariables limits the size of a function's environment variables, in bytes.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxVariables = 4096

// complete sets defaults and validates. https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html
func (c *settings) complete() error {
	if !nameForm.MatchString(c.FunctionName) {
		return invalid("FunctionName %q does not satisfy [a-zA-Z0-9-_]{1,64}", c.FunctionName)
	}
	if c.PackageType == "" {
		c.PackageType = "Zip"
	}
	if len(c.Architectures) == 0 {
		c.Architectures = []string{"x86_64"}
	}
	if c.MemorySize == 0 {
		c.MemorySize = 128
	}
	if c.Timeout == 0 {
		c.Timeout = 3
	}
	if c.TracingConfig == nil {
		c.TracingConfig = &tracing{"PassThrough"}
	}
	if c.EphemeralStorage == nil {
		c.EphemeralStorage = &storage{512}
	}
	if c.LoggingConfig == nil {
		c.LoggingConfig = &logging{}
	}
	if c.LoggingConfig.LogFormat == "" {
		c.LoggingConfig.LogFormat = "Text"
	}
	if c.LoggingConfig.LogGroup == "" {
		c.LoggingConfig.LogGroup = "/aws/lambda/" + c.FunctionName
	}
	switch host := architectures[runtime.GOARCH]; {
	case c.PackageType != "Zip":
		return wire.Unsupported("lambda", "the package type "+c.PackageType)
	case c.Runtime != "provided.al2023" && c.Runtime != "provided.al2":
		return wire.Unsupported("lambda", "the runtime "+c.Runtime)
	case len(c.Architectures) != 1 || c.Architectures[0] != "x86_64" && c.Architectures[0] != "arm64":
		return invalid("Architectures %v: one of x86_64 and arm64", c.Architectures)
	case c.Architectures[0] != host:
		return wire.Unsupported("lambda", "the architecture "+c.Architectures[0]+" on a host of "+host)
	case c.Handler == "" || len(c.Handler) > 128 || strings.ContainsAny(c.Handler, " \t\n"):
		return invalid("Handler %q: 1 to 128 characters without space", c.Handler)
	case c.MemorySize < 128 || c.MemorySize > 10240:
		return invalid("MemorySize %d: between 128 and 10240", c.MemorySize)
	case c.Timeout < 1 || c.Timeout > 900:
		return invalid("Timeout %d: between 1 and 900 seconds", c.Timeout)
	case c.EphemeralStorage.Size < 512 || c.EphemeralStorage.Size > 10240:
		return invalid("EphemeralStorage %d: between 512 and 10240", c.EphemeralStorage.Size)
	case c.LoggingConfig.LogFormat != "Text" && c.LoggingConfig.LogFormat != "JSON":
		return invalid("LogFormat %q: Text or JSON", c.LoggingConfig.LogFormat)
	case c.LoggingConfig.LogFormat == "Text" && c.LoggingConfig.ApplicationLogLevel+c.LoggingConfig.SystemLogLevel != "":
		return invalid("Log levels need the log format JSON")
	case !strings.HasPrefix(c.Role, "arn:"):
		return invalid("Role %q is no ARN", c.Role)
	case c.DeadLetterConfig != nil && c.DeadLetterConfig.TargetArn != "" && !strings.Contains(c.DeadLetterConfig.TargetArn, ":sqs:"):
		return wire.Unsupported("lambda", "the dead-letter target "+c.DeadLetterConfig.TargetArn)
	}
	return c.checkVariables()
}

func (c *settings) checkVariables() error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(c.variables())) {
		if !variableForm.MatchString(name) {
			return invalid("The environment variable %q does not satisfy %s", name, variableForm)
		}
		if slices.Contains(reservedVariables, name) {
			return invalid("Lambda was unable to configure your environment variables because the environment variables you have provided contains "+
				"reserved keys that are currently not supported for modification. Reserved keys used in this request: %s", name)
		}
		size += len(name) + len(c.variables()[name])
	}
	if size > maxVariables {
		return invalid("Lambda was unable to configure your environment variables " +
			"because the environment variables you have provided exceeded the 4KB limit")
	}
	return nil
}

func (c *settings) variables() map[string]string {
	if c.Environment == nil {
		return nil
	}
	return c.Environment.Variables
}

// sessionName returns the name of a function's role session. STS requires at least two characters.
func sessionName(function string) string {
	if len(function) < 2 {
		return function + "_"
	}
	return function
}

// reservedVariables environment variables, which Lambda sets.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
var reservedVariables = []string{
	"_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_NAME",
	"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME",
	"AWS_LAMBDA_LOG_STREAM_NAME", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
}

// clone returns a deep copy.
func (c settings) clone() settings {
	raw, _ := json.Marshal(c) // plain data
	copied := settings{}
	_ = json.Unmarshal(raw, &copied)
	copied.ReservedInstances = c.ReservedInstances
	return copied
}
