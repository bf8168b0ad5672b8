package drain

// LegacyPolicy applies to pools that were deployed before pools had a drain policy.
var LegacyPolicy = Policy{Timeout: 3600, OnTimeout: Wait, DeleteEmptyDirData: true, UnmanagedPods: EvictUnmanaged}
