package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissedLimitFails(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out, machine: "a machine"}
	r.begin("speed")
	r.add("fast enough", 2500, "1/s", atLeast(2000), "")
	r.add("without a limit", 12.345, "ms", nil, "a word")
	r.table()
	require.NoError(t, r.missedError())
	r.begin("size")
	r.add("at the limit", 15, "MB", atMost(15), "")
	r.add("too large", 15.04, "MB", atMost(15), "")
	r.add("not none", 1, "", atMost(0), "s3:PutObject by plan 1")
	r.table()
	err := r.missedError()
	require.ErrorContains(t, err, "2 limits are missed")
	require.ErrorContains(t, err, "size: too large (15.04 MB, ≤ 15)")
	require.ErrorContains(t, err, "size: not none (1, ≤ 0)")
	require.NotContains(t, err.Error(), "at the limit")
	require.Regexp(t, `fast enough +2500 1/s +≥ 2000 +met`, out.String())
	require.Regexp(t, `without a limit +12\.3 ms +a word`, out.String())
	require.Regexp(t, `too large +15\.04 MB +≤ 15 +MISSED`, out.String())
	require.Equal(t, `{"machine":"a machine"}
{"section":"speed","figure":"fast enough","value":2500,"unit":"1/s","limit":{"atLeast":2000}}
{"section":"speed","figure":"without a limit","value":12.345,"unit":"ms","note":"a word"}
{"section":"size","figure":"at the limit","value":15,"unit":"MB","limit":{"atMost":15}}
{"section":"size","figure":"too large","value":15.04,"unit":"MB","limit":{"atMost":15},"missed":true}
{"section":"size","figure":"not none","value":1,"unit":"","limit":{"atMost":0},"note":"s3:PutObject by plan 1","missed":true}
`, string(r.lines()))
}

func TestQuantilesAreMeasuredValues(t *testing.T) {
	values := []float64{20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	require.Equal(t, 19.0, quantile(values, 0.95))
	require.Equal(t, 20.0, quantile(values, 1))
	require.Equal(t, 1.0, quantile(values, 0))
	require.Equal(t, 10.0, median(values))
	require.Equal(t, 7.0, median([]float64{7}))
	require.Equal(t, 20.0, values[0], "the values stay as they were")
}

func TestReadBenchmarks(t *testing.T) {
	require.Equal(t, map[string]float64{"BenchmarkRender": 4358, "BenchmarkPlainTemplates": 6051.5}, clustersPerSecond(`cpu: AMD EPYC
BenchmarkRender         	    5089	    229450 ns/op	      4358 clusters/s	  149191 B/op	    1679 allocs/op
BenchmarkOther          	    5089	    229450 ns/op
BenchmarkPlainTemplates 	    7092	    165263 ns/op	    6051.5 clusters/s
PASS
`))
}

const demoSaid = `   0.0s  local account 000000000000 in us-east-1 at http://127.0.0.1:43557
   1.9s  deployed drover, as cdk deploy does: 83 resources
   2.2s  stack       demo         network            CREATE_IN_PROGRESS
   3.7s  stack       demo         network            CREATE_COMPLETE
  13.0s  stack       demo         control-plane      CREATE_COMPLETE
  14.4s  stack       demo         addons             CREATE_COMPLETE
  15.6s  stack       demo         pool-spot          CREATE_COMPLETE
  15.7s  stack       demo         pool-workers       CREATE_COMPLETE
  16.6s  stack       demo         addons-on-nodes    CREATE_COMPLETE
`

func TestStagesOfTheDemo(t *testing.T) {
	ends, err := stageEnds(demoSaid + "  16.7s  status      demo         Ready: the cluster matches its spec\n")
	require.NoError(t, err)
	require.Equal(t, []float64{1.9, 3.7, 13.0, 14.4, 15.7, 16.6, 16.7}, ends)
	_, err = stageEnds(demoSaid)
	require.EqualError(t, err, "no line says status")
}

func TestOnlyKnownSectionsAreChosenInTheirOrder(t *testing.T) {
	all, err := choose("")
	require.NoError(t, err)
	require.Len(t, all, len(sections))
	chosen, err := choose("create,render")
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	require.Equal(t, "render", chosen[0].name)
	for _, args := range [][]string{{"-only", "rendr"}, {"-starts", "0"}, {"-count", "0"}, {"-fast"}} {
		require.Error(t, bench(t.Context(), args, io.Discard), args)
	}
}
