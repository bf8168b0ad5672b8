package lambda

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"
)

func TestAccountSettings(t *testing.T) {
	w := newWorld(t)
	w.Service.Concurrency.Limit = func() int { return 150 }
	name := w.create(t, nil).FunctionName
	_, err := w.client.PutFunctionConcurrency(t.Context(), &sdk.PutFunctionConcurrencyInput{
		FunctionName: name, ReservedConcurrentExecutions: aws.Int32(20),
	})
	require.NoError(t, err)
	out, err := w.client.GetAccountSettings(t.Context(), &sdk.GetAccountSettingsInput{})
	require.NoError(t, err)
	require.EqualValues(t, 150, out.AccountLimit.ConcurrentExecutions)
	require.EqualValues(t, 130, *out.AccountLimit.UnreservedConcurrentExecutions)
	require.EqualValues(t, 1, out.AccountUsage.FunctionCount)
	require.EqualValues(t, len(w.zip), out.AccountUsage.TotalCodeSize)
}
