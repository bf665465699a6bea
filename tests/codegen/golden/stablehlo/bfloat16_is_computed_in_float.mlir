// h * 2 + 1
module @tenon {
  func.func public @main(%arg0: tensor<4x8xbf16>) -> (tensor<4x8xbf16>) {
    %1 = stablehlo.convert %arg0 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %2 = stablehlo.constant dense<0x40000000> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %4 = stablehlo.multiply %1, %3 : tensor<4x8xf32>
    %5 = stablehlo.constant dense<0x3F800000> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %7 = stablehlo.add %4, %6 : tensor<4x8xf32>
    %8 = stablehlo.bitcast_convert %7 : (tensor<4x8xf32>) -> tensor<4x8xui32>
    %9 = stablehlo.constant dense<16> : tensor<4x8xui32>
    %10 = stablehlo.shift_right_logical %8, %9 : tensor<4x8xui32>
    %11 = stablehlo.constant dense<1> : tensor<4x8xui32>
    %12 = stablehlo.and %10, %11 : tensor<4x8xui32>
    %13 = stablehlo.add %8, %12 : tensor<4x8xui32>
    %14 = stablehlo.constant dense<32767> : tensor<4x8xui32>
    %15 = stablehlo.add %13, %14 : tensor<4x8xui32>
    %16 = stablehlo.constant dense<4294901760> : tensor<4x8xui32>
    %17 = stablehlo.and %15, %16 : tensor<4x8xui32>
    %18 = stablehlo.compare NE, %7, %7, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %19 = stablehlo.bitcast_convert %17 : (tensor<4x8xui32>) -> tensor<4x8xf32>
    %20 = stablehlo.select %18, %7, %19 : tensor<4x8xi1>, tensor<4x8xf32>
    %21 = stablehlo.bitcast_convert %20 : (tensor<4x8xf32>) -> tensor<4x8xui32>
    %22 = stablehlo.constant dense<4194304> : tensor<4x8xui32>
    %23 = stablehlo.constant dense<0> : tensor<4x8xui32>
    %24 = stablehlo.select %18, %22, %23 : tensor<4x8xi1>, tensor<4x8xui32>
    %25 = stablehlo.or %21, %24 : tensor<4x8xui32>
    %26 = stablehlo.shift_right_logical %25, %9 : tensor<4x8xui32>
    %27 = stablehlo.convert %26 : (tensor<4x8xui32>) -> tensor<4x8xui16>
    %28 = stablehlo.bitcast_convert %27 : (tensor<4x8xui16>) -> tensor<4x8xbf16>
    "func.return"(%28) : (tensor<4x8xbf16>) -> ()
  }
}
