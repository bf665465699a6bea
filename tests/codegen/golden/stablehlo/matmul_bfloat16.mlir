// h @ cast(w, bfloat16)
module @tenon {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4x8xbf16>) -> (tensor<4x4xbf16>) {
    %2 = stablehlo.convert %arg1 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %3 = stablehlo.bitcast_convert %arg0 : (tensor<8x4xf32>) -> tensor<8x4xui32>
    %4 = stablehlo.constant dense<16> : tensor<8x4xui32>
    %5 = stablehlo.shift_right_logical %3, %4 : tensor<8x4xui32>
    %6 = stablehlo.constant dense<1> : tensor<8x4xui32>
    %7 = stablehlo.and %5, %6 : tensor<8x4xui32>
    %8 = stablehlo.add %3, %7 : tensor<8x4xui32>
    %9 = stablehlo.constant dense<32767> : tensor<8x4xui32>
    %10 = stablehlo.add %8, %9 : tensor<8x4xui32>
    %11 = stablehlo.constant dense<4294901760> : tensor<8x4xui32>
    %12 = stablehlo.and %10, %11 : tensor<8x4xui32>
    %13 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
    %14 = stablehlo.bitcast_convert %12 : (tensor<8x4xui32>) -> tensor<8x4xf32>
    %15 = stablehlo.select %13, %arg0, %14 : tensor<8x4xi1>, tensor<8x4xf32>
    %16 = stablehlo.dot_general %2, %15, batching_dims = [] x [], contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %17 = stablehlo.bitcast_convert %16 : (tensor<4x4xf32>) -> tensor<4x4xui32>
    %18 = stablehlo.constant dense<16> : tensor<4x4xui32>
    %19 = stablehlo.shift_right_logical %17, %18 : tensor<4x4xui32>
    %20 = stablehlo.constant dense<1> : tensor<4x4xui32>
    %21 = stablehlo.and %19, %20 : tensor<4x4xui32>
    %22 = stablehlo.add %17, %21 : tensor<4x4xui32>
    %23 = stablehlo.constant dense<32767> : tensor<4x4xui32>
    %24 = stablehlo.add %22, %23 : tensor<4x4xui32>
    %25 = stablehlo.constant dense<4294901760> : tensor<4x4xui32>
    %26 = stablehlo.and %24, %25 : tensor<4x4xui32>
    %27 = stablehlo.compare NE, %16, %16, FLOAT : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
    %28 = stablehlo.bitcast_convert %26 : (tensor<4x4xui32>) -> tensor<4x4xf32>
    %29 = stablehlo.select %27, %16, %28 : tensor<4x4xi1>, tensor<4x4xf32>
    %30 = stablehlo.bitcast_convert %29 : (tensor<4x4xf32>) -> tensor<4x4xui32>
    %31 = stablehlo.constant dense<4194304> : tensor<4x4xui32>
    %32 = stablehlo.constant dense<0> : tensor<4x4xui32>
    %33 = stablehlo.select %27, %31, %32 : tensor<4x4xi1>, tensor<4x4xui32>
    %34 = stablehlo.or %30, %33 : tensor<4x4xui32>
    %35 = stablehlo.shift_right_logical %34, %18 : tensor<4x4xui32>
    %36 = stablehlo.convert %35 : (tensor<4x4xui32>) -> tensor<4x4xui16>
    %37 = stablehlo.bitcast_convert %36 : (tensor<4x4xui16>) -> tensor<4x4xbf16>
    "func.return"(%37) : (tensor<4x4xbf16>) -> ()
  }
}
