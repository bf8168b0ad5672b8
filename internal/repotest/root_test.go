package repotest

// root is the folder of the repository. Each test changes to it first, so that it names files as pages do. A change before the tests begin,
// as in TestMain, would hide from Go which files they read, and Go would reuse the result of an earlier run.
const root = "../.."
