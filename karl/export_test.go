package karl

// CheckRoundTrip is for tests outside the package.
var CheckRoundTrip = checkRoundTrip
