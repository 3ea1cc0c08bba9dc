// What the compiler knows about registers.

// The word keeps its value, but from here on the compiler does not know what it was computed from.
CXXI_FN void cxxi_hide_origin(unsigned int& word) { asm("" : "+r"(word)); }
