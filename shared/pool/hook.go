package pool

// The lifecycle hooks of a pool's instances: see the pool's template.
const (
	LaunchHook    = "launch"
	TerminateHook = "terminate"
)

// HookResult completes the wait of an instance at a hook.
type HookResult string

// The results. After Abandon at the launch hook, Auto Scaling replaces the instance.
const (
	Continue HookResult = "CONTINUE"
	Abandon  HookResult = "ABANDON"
)
