package fault

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// awsError implements the interfaces of the SDK's errors.
type awsError struct {
	code   string
	status int
}

func (e *awsError) Error() string       { return e.code }
func (e *awsError) ErrorCode() string   { return e.code }
func (e *awsError) HTTPStatusCode() int { return e.status }

func TestNameIsTheTypesName(t *testing.T) {
	for _, f := range All() {
		require.Equal(t, reflect.TypeOf(f).Elem().Name(), Name(f))
	}
}

func TestClassify(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"throttled":                             {&awsError{"ThrottlingException", 400}, "Throttled"},
		"throttled by CloudFormation":           {&awsError{"Throttling", 400}, "Throttled"},
		"throttled by S3":                       {&awsError{"SlowDown", 503}, "Throttled"},
		"429 with any code":                     {&awsError{"X", 429}, "Throttled"},
		"a server error":                        {&awsError{"InternalFailure", 500}, "Transient"},
		"503 with any code":                     {&awsError{"X", 503}, "Transient"},
		"a conflicting write":                   {&awsError{"ConditionalRequestConflict", 409}, "Transient"},
		"a missing permission":                  {&awsError{"AccessDenied", 403}, "Internal"},
		"a deadline":                            {context.DeadlineExceeded, "Transient"},
		"anything else":                         {errors.New("x"), "Internal"},
		"a fault keeps its name when wrapped":   {fmt.Errorf("w: %w", &StackFailed{errors.New("x")}), "StackFailed"},
		"an AWS error is found when wrapped":    {fmt.Errorf("w: %w", &awsError{"Throttling", 400}), "Throttled"},
		"a fault keeps its name over its cause": {&LeaseLost{&awsError{"Throttling", 400}}, "LeaseLost"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, NameOf(test.err)) })
	}
	require.NoError(t, Classify(nil))
}

func TestDenied(t *testing.T) {
	for err, want := range map[error]bool{
		&awsError{"AccessDenied", 403}: true, &awsError{"AccessDeniedException", 400}: true, &awsError{"UnauthorizedOperation", 403}: true,
		&awsError{"ThrottlingException", 400}: false, errors.New("x"): false,
	} {
		require.Equal(t, want, Denied(fmt.Errorf("w: %w", err)), err)
	}
	require.False(t, Denied(nil))
}
