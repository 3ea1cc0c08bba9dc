// What a kernel reads of its arguments. Part of kernels' templates. The kernel of a grouped launch finds its launch in the table by its block.
/*{{for grouped*/
int cxxi_entry = 0;  // the last one whose first block is not past this one
/*{{for strides*/
if (cxxi_entry + /*{{stride*/ 2 /*}}*/ < /*{{launches*/ 4 /*}}*/ && cxxi_table.first[cxxi_entry + /*{{stride*/ 2 /*}}*/] <= blockIdx.x) cxxi_entry += /*{{stride*/ 2 /*}}*/;
/*}}*/
const unsigned int cxxi_block = blockIdx.x - cxxi_table.first[cxxi_entry];
/*}}*/
/*{{for arguments*/
/*{{for is_value*/
/*{{for in_table*/ const /*{{type*/ float /*}}*/ /*{{h*/ h7 /*}}*/ = cxxi_table./*{{p*/ p7 /*}}*/[cxxi_entry].value; /*}}*/
const /*{{type*/ float /*}}*/* const /*{{p*/ p7 /*}}*/ = &/*{{h*/ h7 /*}}*/;
/*}}*/
/*{{for is_address*/
/*{{for in_table*/ /*{{type*/ const float /*}}*/* const __restrict__ /*{{p*/ p8 /*}}*/ = cxxi_table./*{{p*/ p8 /*}}*/[cxxi_entry]; /*}}*/
/*}}*/
/*}}*/
/*{{for symbols*/
/*{{for in_table*/ const long long /*{{argument*/ a_s0 /*}}*/ = cxxi_table./*{{entry*/ s0 /*}}*/[cxxi_entry]; /*}}*/
const cxxi_index /*{{symbol*/ s_s0 /*}}*/ = cxxi_index(/*{{argument*/ a_s0 /*}}*/);
/*}}*/
