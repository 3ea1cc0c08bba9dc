// The states of a reduction whose row names no struct of reduce.cuh, made of the row's statements. Follows join.cuh in a unit.
struct /*{{name*/ cxxi_state_example_f32 /*}}*/ {
  static constexpr bool ordered = true;
  /*{{for components*/ /*{{type*/ float /*}}*/ /*{{c*/ c_value /*}}*/; /*}}*/
  CXXI_FN static /*{{name*/ cxxi_state_example_f32 /*}}*/ start() {
    /*{{start*/ return {0.0f}; /*}}*/
  }
  CXXI_FN static /*{{name*/ cxxi_state_example_f32 /*}}*/ of(/*{{operand*/ float /*}}*/ x, long long at) {
    /*{{lift*/ return {x}; /*}}*/
  }
  CXXI_FN void update(/*{{operand*/ float /*}}*/ x, long long at) { merge(of(x, at)); }
  template <int N>
  CXXI_FN void update(const /*{{operand*/ float /*}}*/ (&values)[N], int count, long long first) {
#pragma unroll
    for (int e = 0; e < N; ++e) {
      if (e < count) update(values[e], first + e);
    }
  }
  CXXI_FN void merge(const /*{{name*/ cxxi_state_example_f32 /*}}*/& b) {
    const /*{{name*/ cxxi_state_example_f32 /*}}*/ a = *this;
    /*{{merge*/ c_value = a.c_value + b.c_value; /*}}*/
  }
  CXXI_FN /*{{name*/ cxxi_state_example_f32 /*}}*/ from_lane(int mask) const { return {/*{{lanes*/ cxxi_from_lane(c_value, mask) /*}}*/}; }
  template <int Which>
  CXXI_FN auto result() const {
    /*{{finish*/ if constexpr (Which == 0) return c_value; /*}}*/
  }
};
