package fault

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// awsError looks like the SDK's.
type awsError struct {
	code   string
	status int
}

func (e *awsError) Error() string       { return e.code }
func (e *awsError) ErrorCode() string   { return e.code }
func (e *awsError) HTTPStatusCode() int { return e.status }

func TestNamesAreThoseOfTheTypes(t *testing.T) {
	for _, f := range All() {
		require.Equal(t, reflect.TypeOf(f).Elem().Name(), Name(f))
	}
}

func TestClassify(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"a throttled call":                      {&awsError{"ThrottlingException", 400}, "Throttled"},
		"CloudFormation's own word for it":      {&awsError{"Throttling", 400}, "Throttled"},
		"S3's own word for it":                  {&awsError{"SlowDown", 503}, "Throttled"},
		"429 whatever it says":                  {&awsError{"X", 429}, "Throttled"},
		"a server's failure":                    {&awsError{"InternalFailure", 500}, "Transient"},
		"503 whatever it says":                  {&awsError{"X", 503}, "Transient"},
		"a conflict of conditional writes":      {&awsError{"ConditionalRequestConflict", 409}, "Transient"},
		"a permission that is missing":          {&awsError{"AccessDenied", 403}, "Internal"},
		"a deadline":                            {context.DeadlineExceeded, "Transient"},
		"anything else":                         {errors.New("x"), "Internal"},
		"a fault keeps its name when wrapped":   {fmt.Errorf("w: %w", &StackFailed{errors.New("x")}), "StackFailed"},
		"an AWS error is found when wrapped":    {fmt.Errorf("w: %w", &awsError{"Throttling", 400}), "Throttled"},
		"a fault wins over what it was made of": {&LeaseLost{&awsError{"Throttling", 400}}, "LeaseLost"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, NameOf(test.err)) })
	}
	require.NoError(t, Classify(nil))
}
